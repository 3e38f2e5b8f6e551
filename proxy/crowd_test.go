//go:build linux

package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"sbx.example/sbx/shared/proxied"
)

// Requests beyond those that may be under way wait, and go on when others end. What has ended keeps no place.
func TestCrowds(t *testing.T) {
	const more = 64
	var under, most atomic.Int64
	came, over := make(chan struct{}, 2*maxUnderWay), make(chan struct{})
	l := endpoint(t, proxied.Budget{}, func(w http.ResponseWriter, r *http.Request) {
		n := under.Add(1)
		for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
		}
		came <- struct{}{}
		<-over
		under.Add(-1)
	})
	ask := func() net.Conn {
		c, err := net.Dial("tcp", l.addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		_ = c.SetDeadline(time.Now().Add(time.Minute))
		fmt.Fprint(c, "GET /v1/x HTTP/1.1\r\nHost: x\r\n\r\n")
		return c
	}
	var conns []net.Conn
	for range maxUnderWay {
		conns = append(conns, ask())
	}
	for range maxUnderWay {
		<-came
	}
	for range more {
		conns = append(conns, ask())
	}
	for len(l.p.crowd.conns) < maxUnderWay+more {
		time.Sleep(time.Millisecond)
	}
	close(over)
	for _, c := range conns {
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatal(resp, err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		c.Close()
	}
	if most.Load() != maxUnderWay {
		t.Errorf("%d requests were under way at once", most.Load())
	}
	for end := time.Now().Add(20 * time.Second); len(l.p.crowd.requests) > 0 || len(l.p.crowd.conns) > 2; {
		if time.Sleep(time.Millisecond); time.Now().After(end) {
			t.Fatalf("%d requests and %d connections keep their places", len(l.p.crowd.requests), len(l.p.crowd.conns))
		}
	}
}

// A connection whose handshake fails gives its place back.
func TestFailedHandshakesLeaveTheCrowd(t *testing.T) {
	l := newLab(t, nil, nil)
	for range 200 {
		c, err := net.Dial("tcp", l.addr)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(c, "no handshake\r\n\r\n")
		c.Close()
	}
	l.do(l.client(false), "GET", "https://one.test/", nil, nil)
	for end := time.Now().Add(20 * time.Second); len(l.p.crowd.conns) > 2; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d connections keep their places", len(l.p.crowd.conns))
		}
	}
}
