//go:build linux

package main

import (
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// upload is the body of a request that goes on. The transport may still read it when the answer has ended
// (httputil.ReverseProxy neither waits for that nor ends it), and net/http crashes where two read a connection.
type upload struct {
	io.ReadCloser
	whole atomic.Bool // it was read to its end

	mu   sync.Mutex // of the read under way
	over bool
}

var errAnswered = errors.New("the request was answered before all of it was read")

func (u *upload) Read(b []byte) (int, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.over {
		return 0, errAnswered
	}
	n, err := u.ReadCloser.Read(b)
	if errors.Is(err, io.EOF) {
		u.whole.Store(true)
	}
	return n, err
}

// lingering is how long a client that still sends has to read the answer.
const lingering = 500 * time.Millisecond

// end waits for the read under way, and refuses others.
func (u *upload) end(w http.ResponseWriter) {
	if u.whole.Load() {
		return
	}
	answer := http.NewResponseController(w)
	_ = answer.SetReadDeadline(time.Now()) // the client may never send what is waited for
	u.mu.Lock()
	defer u.mu.Unlock()
	u.over = true
	_ = answer.SetReadDeadline(time.Now().Add(lingering)) // for net/http, which reads some of the rest
}

// onward is the answer to a request that goes on. Hints that come before it lose their headers: nobody has looked at
// those. A connection on which more of the request may come has no other one.
type onward struct {
	http.ResponseWriter
	closes func() bool
}

// Unwrap lets http.ResponseController find what else the writer can do.
func (o onward) Unwrap() http.ResponseWriter { return o.ResponseWriter }

func (o onward) WriteHeader(status int) {
	switch {
	case status == http.StatusSwitchingProtocols:
	case status < http.StatusOK:
		clear(o.Header())
	case o.closes():
		o.Header().Set("Connection", "close")
	}
	o.ResponseWriter.WriteHeader(status)
}

// carry has the server outside asked.
func (s *site) carry(w http.ResponseWriter, r *http.Request) {
	body := &upload{ReadCloser: r.Body}
	if body.whole.Store(r.ContentLength == 0); r.ContentLength != 0 {
		r.Body = body
	}
	defer body.end(w) // also where the client has gone, which is a panic
	// A server may answer before it has all of a body. net/http would then close the body under the transport, which
	// reads it to its end, and that ended the answer (golang.org/issue/40747).
	_ = http.NewResponseController(w).EnableFullDuplex() // HTTP/2 always is
	s.forward.ServeHTTP(onward{w, func() bool { return r.ProtoMajor == 1 && !body.whole.Load() }}, r)
}
