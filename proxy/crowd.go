//go:build linux

package main

import (
	"net"
	"net/http"
)

// Bounds of a session: what a program asks for takes memory and descriptors of the host.
const (
	maxConns    = 1024 // of programs inside
	maxUnderWay = 256  // requests; each may be a stream, and has buffers and a connection outside
	maxStreams  = 64   // requests on one connection of HTTP/2
)

// crowd is what a session has under way, over all its listeners.
type crowd struct {
	conns, requests chan struct{}
}

func newCrowd() crowd {
	return crowd{make(chan struct{}, maxConns), make(chan struct{}, maxUnderWay)}
}

// around has requests wait for their place, before they have anything but a head.
func (c crowd) around(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case c.requests <- struct{}{}:
			defer func() { <-c.requests }()
			h.ServeHTTP(w, r)
		case <-r.Context().Done():
		}
	})
}

// admitted are the connections of a listener that have a place.
type admitted struct {
	net.Listener
	conns chan struct{}
}

func (a admitted) Accept() (net.Conn, error) {
	a.conns <- struct{}{}
	c, err := a.Listener.Accept()
	if err != nil {
		<-a.conns
	}
	return c, err
}

// left gives the place of a connection back. One that was taken over is a request's, which has a place of its own.
func (c crowd) left(_ net.Conn, to http.ConnState) {
	if to == http.StateClosed || to == http.StateHijacked {
		<-c.conns
	}
}
