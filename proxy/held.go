//go:build linux

package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"
)

// Bounds of bodies that are held, because they have to be known before a request is made.
const (
	heldFree = 1 << 20 // a larger one needs a place of its own kind
	maxSmall = 64      // places of all of them
	maxLarge = 4       // and of large ones

	bodyPatience = time.Minute // for the client to send one
)

var errLong = errors.New("it is too long")

// bodies are the places of those that are held.
type bodies struct {
	small, large chan struct{}
	patience     time.Duration
}

func newBodies() bodies {
	return bodies{make(chan struct{}, maxSmall), make(chan struct{}, maxLarge), bodyPatience}
}

// places are those that one request has.
type places struct {
	mu    sync.Mutex
	taken []chan struct{}
}

// take waits for a place.
func (p *places) take(ctx context.Context, of chan struct{}) error {
	select {
	case of <- struct{}{}:
		p.mu.Lock()
		defer p.mu.Unlock()
		p.taken = append(p.taken, of)
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// leave gives all back.
func (p *places) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, of := range p.taken {
		<-of
	}
	p.taken = nil
}

// heldBody is a body that was read. Its place is free when it has left.
type heldBody struct {
	mu    sync.Mutex
	left  []byte
	leave func()
}

func (h *heldBody) Read(b []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.left) == 0 {
		return 0, io.EOF
	}
	n := copy(b, h.left)
	h.left = h.left[n:]
	return n, nil
}

func (h *heldBody) Close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.left = nil
	h.leave()
	return nil
}

// hold reads a body of up to limit bytes, and has the request carry what was read. Who finds no place waits for one.
func (p *proxy) hold(w http.ResponseWriter, r *http.Request, x *exchange, limit int64) (body []byte, err error) {
	if h, ok := r.Body.(*heldBody); ok {
		return h.left, nil
	}
	if r.ContentLength > limit {
		return nil, errLong
	}
	ctx, answer := r.Context(), http.NewResponseController(w)
	read := func(of chan struct{}, limit int64) error {
		if err := x.places.take(ctx, of); err != nil {
			return err
		}
		_ = answer.SetReadDeadline(time.Now().Add(p.bodies.patience))
		if err := ctx.Err(); err != nil { // who has cut it has set another deadline
			return err
		}
		more, err := io.ReadAll(io.LimitReader(r.Body, limit+1-int64(len(body))))
		body = append(body, more...)
		return err
	}
	err = read(p.bodies.small, min(limit, heldFree))
	if err == nil && len(body) > heldFree && limit > heldFree {
		err = read(p.bodies.large, limit)
	}
	switch {
	case err != nil:
		return nil, err
	case int64(len(body)) > limit:
		return nil, errLong
	}
	_ = answer.SetReadDeadline(time.Time{}) // else the request would end with it
	setBody(r, body)
	if len(body) > 0 {
		r.Body = &heldBody{left: body, leave: x.places.leave}
	}
	return body, nil
}
