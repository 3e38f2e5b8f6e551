//go:build linux

package main

import (
	"cmp"
	"io"
	"net/http"
	"slices"
	"strings"
)

// covered is a text that must not come back, with what stands for it in headers.
type covered struct{ text, by string }

// leastCovered is how long a value is at least that is looked for in what comes back: a shorter one stands in texts
// that have nothing to do with it.
const leastCovered = 8

// covering adds texts of a secret to a list.
func covering(list []covered, s *secret, texts ...string) []covered {
	for _, text := range texts {
		if len(text) >= leastCovered {
			list = append(list, covered{text, s.Placeholder})
		}
	}
	return list
}

// spell notes how the request that leaves has its values: plain, in an address, and in HTTP's own authentication.
func (x *exchange) spell(out *http.Request) {
	for _, u := range x.used {
		x.cover = covering(x.cover, u, u.texts()...)
	}
	for _, v := range out.Header["Authorization"] {
		if scheme, token, ok := strings.Cut(v, " "); ok && strings.EqualFold(scheme, "Basic") && len(x.used) > 0 {
			x.cover = covering(x.cover, x.used[0], token)
		}
	}
}

// hide covers in an answer what is known of values. A server may send back what it was sent sooner, or at another site.
func (x *exchange) hide(r *http.Response, known []*secret) {
	for _, s := range known {
		x.cover = covering(x.cover, s, s.texts()...)
	}
	// The longest first: it may have another one in it.
	slices.SortFunc(x.cover, func(a, b covered) int {
		return cmp.Or(cmp.Compare(len(b.text), len(a.text)), strings.Compare(a.text, b.text))
	})
	x.cover = slices.CompactFunc(x.cover, func(a, b covered) bool { return a.text == b.text })
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
	for _, c := range x.cover {
		m := newMask(r.Body, c.text, length)
		if ok { // whoever is answered waits for the end of each message
			m.back = leastCovered - 1
		}
		r.Body = m
	}
	if ok {
		r.Body = struct {
			io.ReadCloser
			io.Writer
		}{r.Body, socket}
		return
	}
	r.Body = &trailed{r.Body, r, x}
}

// coverHeader has the placeholder stand where a value is sent back.
func (x *exchange) coverHeader(h http.Header) {
	for _, list := range h {
		for i := range list {
			for _, c := range x.cover {
				list[i] = strings.ReplaceAll(list[i], c.text, c.by)
			}
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

// bareHints lets the hints that come before an answer on without their headers: nobody has looked at those.
type bareHints struct{ http.ResponseWriter }

// Unwrap lets http.ResponseController find what else the writer can do.
func (b bareHints) Unwrap() http.ResponseWriter { return b.ResponseWriter }

func (b bareHints) WriteHeader(status int) {
	if status < http.StatusOK && status != http.StatusSwitchingProtocols {
		clear(b.Header())
	}
	b.ResponseWriter.WriteHeader(status)
}
