//go:build linux

package main

import (
	"bytes"
	"cmp"
	"io"
	"net/http"
	"slices"
	"strings"
)

// covered is a text that must not come back, with what stands for it in headers.
type covered struct {
	text []byte
	by   string
}

// leastCovered is how long a value is at least that is looked for in what comes back: a shorter one stands in texts
// that have nothing to do with it.
const leastCovered = 8

// covering adds texts of a secret to a list.
func covering(list []covered, s *secret, texts ...string) []covered {
	for _, text := range texts {
		if len(text) >= leastCovered {
			list = append(list, covered{[]byte(text), s.Placeholder})
		}
	}
	return list
}

// span is where a text has something to cover.
type span struct {
	from, to int
	by       string
}

// spans adds what is to be covered of a text from fresh on, where what was not looked at before begins. Each is looked
// for in the text as it came: two may have a part in common, and a program may have chosen one of them for that.
func spans(list []span, text []byte, cover []covered, fresh int) []span {
	for _, c := range cover {
		for at := max(fresh-len(c.text)+1, 0); ; at++ {
			i := bytes.Index(text[at:], c.text)
			if i < 0 {
				break
			}
			at += i
			list = append(list, span{at, at + len(c.text), c.by})
		}
	}
	slices.SortFunc(list, func(a, b span) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(b.to, a.to)) })
	apart := list[:0]
	for _, s := range list {
		if last := len(apart) - 1; last >= 0 && s.from < apart[last].to {
			apart[last].to = max(apart[last].to, s.to)
		} else {
			apart = append(apart, s)
		}
	}
	return apart
}

// replaced is a text with placeholders for what is to be covered.
func replaced(text string, cover []covered) string {
	var out strings.Builder
	at := 0
	for _, s := range spans(nil, []byte(text), cover, 0) {
		out.WriteString(text[at:s.from] + s.by)
		at = s.to
	}
	return out.String() + text[at:]
}

// spell notes how the request that leaves has its values: plain, in an address, and in HTTP's own authentication.
func (x *exchange) spell(out *http.Request) {
	for _, u := range x.used {
		x.cover = covering(x.cover, u, u.texts()...)
	}
	for _, v := range out.Header["Authorization"] {
		user, password, _ := unbasic(v)
		_, token, _ := strings.Cut(v, " ")
		for _, u := range x.used { // one without a value is the program's own, and may be a part of anything
			if u.value != "" && strings.Contains(user+":"+password, u.value) {
				x.cover = covering(x.cover, u, strings.TrimSpace(token))
			}
		}
	}
}

// hide covers in an answer what is known of values. A server may send back what it was sent sooner, or at another site.
func (x *exchange) hide(r *http.Response, known []*secret) {
	for _, s := range known {
		x.cover = covering(x.cover, s, s.texts()...)
	}
	slices.SortStableFunc(x.cover, func(a, b covered) int { return bytes.Compare(a.text, b.text) })
	x.cover = slices.CompactFunc(x.cover, func(a, b covered) bool { return bytes.Equal(a.text, b.text) })
	if len(x.cover) == 0 {
		return
	}
	x.coverHeader(r.Header)
	socket, ok := r.Body.(io.ReadWriteCloser)
	ok = ok && r.StatusCode == http.StatusSwitchingProtocols
	length := r.ContentLength
	if ok {
		length = -1
	}
	m := newMask(r.Body, x.cover, length)
	if ok { // whoever is answered waits for the end of each message
		m.back = leastCovered - 1
		r.Body = struct {
			io.ReadCloser
			io.Writer
		}{m, socket}
		return
	}
	r.Body = &trailed{m, r, x}
}

// coverHeader has the placeholder stand where a value is sent back.
func (x *exchange) coverHeader(h http.Header) {
	for _, list := range h {
		for i := range list {
			list[i] = replaced(list[i], x.cover)
		}
	}
}

// trailed covers what comes behind a body, which is known once that has ended.
type trailed struct {
	io.ReadCloser
	r *http.Response
	x *exchange
}

func (t *trailed) Read(b []byte) (int, error) {
	n, err := t.ReadCloser.Read(b)
	if err != nil {
		t.x.coverHeader(t.r.Trailer)
	}
	return n, err
}
