//go:build linux

package main

import (
	"errors"
	"io"
	"net/http"
	"strings"

	"sbx.example/sbx/shared/mark"
	"sbx.example/sbx/shared/proxied"
)

var errMarked = errors.New("it has the mark of a decoy")

// marked refuses a request with the mark of a decoy in its head, and has its body looked at as it passes.
func (s *site) marked(w http.ResponseWriter, r *http.Request) bool {
	marks := s.p.conf.Marks
	if len(marks) == 0 {
		return false
	}
	var head strings.Builder
	head.WriteString(r.Method + "\n" + r.URL.String() + "\n")
	_ = r.Header.Write(&head)
	for name := range r.Trailer { // what they say does not go on
		head.WriteString(name + "\n")
	}
	use := func(m *mark.Mark) proxied.Use {
		return proxied.Use{Host: s.Host, Port: s.Port, Method: r.Method, Status: http.StatusForbidden,
			Refused: errMarked.Error(), Decoy: m.Path}
	}
	if m := mark.Find(marks, head.String()); m != nil {
		s.p.refuse(w, use(m))
		return true
	}
	r.Body = &looked{ReadCloser: r.Body, marks: marks, found: func(m *mark.Mark) { s.p.out.use(use(m)) }}
	return false
}

// looked is a body that ends where a mark stands in it.
type looked struct {
	io.ReadCloser
	marks []mark.Mark
	tail  string // of what was read before
	over  bool
	found func(*mark.Mark)
}

func (l *looked) Read(b []byte) (int, error) {
	if l.over {
		return 0, errMarked
	}
	n, err := l.ReadCloser.Read(b)
	text := l.tail + string(b[:n])
	if m := mark.Find(l.marks, text); m != nil {
		l.over = true
		l.found(m)
		return 0, errMarked
	}
	l.tail = text[max(0, len(text)-mark.Spread):]
	return n, err
}
