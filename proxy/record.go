//go:build linux

package main

import (
	"encoding/json"
	"io"
	"net/http"
	"sync"
	"time"
)

// recorder writes down what endpoints are asked and answer, as programs inside see it: with placeholders, and without
// what the server sends back of a value. Of headers there is the type alone, and of addresses no parameter.
type recorder struct {
	mu sync.Mutex
	to io.Writer
}

// exchanged is one request, a line of JSON.
type exchanged struct {
	Time     time.Time `json:"time"`
	Endpoint string    `json:"endpoint"`
	Method   string    `json:"method"`
	Path     string    `json:"path"`
	Status   int       `json:"status"`
	Seconds  float64   `json:"seconds"`
	Request  spoken    `json:"request"`
	Response spoken    `json:"response"`
}

// spoken is one of the two bodies, as far as it is kept.
type spoken struct {
	Type  string `json:"type,omitempty"`
	Bytes int64  `json:"bytes"`
	Body  string `json:"body"`
}

// maxRecorded is how much of a body is kept.
const maxRecorded = 1 << 20

func (s *spoken) Write(b []byte) (int, error) {
	s.Bytes += int64(len(b))
	s.Body += string(b[:min(len(b), maxRecorded-len(s.Body))])
	return len(b), nil
}

// around has what h answers recorded. A nil recorder leaves it as it is.
func (c *recorder) around(endpoint string, h http.Handler) http.Handler {
	if c == nil {
		return h
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		x := exchanged{Time: began.UTC(), Endpoint: endpoint, Method: r.Method, Path: r.URL.Path}
		x.Request.Type = r.Header.Get("Content-Type")
		r.Body = struct {
			io.Reader
			io.Closer
		}{io.TeeReader(r.Body, &x.Request), r.Body}
		defer func() { // also where the client has gone in the middle
			x.Seconds, x.Response.Type = time.Since(began).Seconds(), w.Header().Get("Content-Type")
			c.write(&x)
		}()
		h.ServeHTTP(&heard{w, &x}, r)
	})
}

func (c *recorder) write(x *exchanged) {
	line, err := json.Marshal(x)
	if err != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	_, _ = c.to.Write(append(line, '\n'))
}

// heard is an answer that is recorded on its way.
type heard struct {
	http.ResponseWriter
	x *exchanged
}

// Unwrap lets http.ResponseController find what else the writer can do.
func (h *heard) Unwrap() http.ResponseWriter { return h.ResponseWriter }

func (h *heard) WriteHeader(status int) {
	if status >= http.StatusOK || status == http.StatusSwitchingProtocols { // others are hints on the way
		h.x.Status = status
	}
	h.ResponseWriter.WriteHeader(status)
}

func (h *heard) Write(b []byte) (int, error) {
	if h.x.Status == 0 {
		h.x.Status = http.StatusOK
	}
	n, err := h.ResponseWriter.Write(b)
	_, _ = h.x.Response.Write(b[:n])
	return n, err
}
