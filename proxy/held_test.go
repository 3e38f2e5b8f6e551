//go:build linux

package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"sbx.example/sbx/shared/proxied"
)

// begin sends a request to an endpoint with the beginning of a body that has some length.
func (l *lab) begin(length int64, body string) net.Conn {
	l.t.Helper()
	c, err := net.Dial("tcp", l.addr)
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(10 * time.Second)) // who waits for a body that does not come fails here
	fmt.Fprintf(c, "POST /v1/messages HTTP/1.1\r\nHost: e\r\nContent-Length: %d\r\n\r\n%s", length, body)
	return c
}

// counted waits until so many requests have ended.
func (l *lab) counted(n int) {
	l.t.Helper()
	eventually(l.t, "all have ended", func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		ended := 0
		for _, u := range l.uses {
			if u.Spent != nil {
				ended++
			}
		}
		return ended == n
	})
}

// answered reads the answer; 0 is none.
func answered(c net.Conn) (int, string) {
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return 0, err.Error()
	}
	b, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b)
}

// What no budget is left for, or is too long, is refused before its body is read.
func TestFullEndpointsReadNothing(t *testing.T) {
	l := endpoint(t, proxied.Budget{Requests: 1, Tokens: 1 << 40, API: "openai"}, nil)
	if status, text := answered(l.begin(maxAsked+1, "{")); status != 400 || !strings.Contains(text, "too long") {
		t.Errorf("too long: %d %s", status, text)
	}
	if status, text := l.ask("m"); status != 200 { // control
		t.Fatalf("%d %s", status, text)
	}
	l.counted(1)
	if status, text := answered(l.begin(maxAsked, "{")); status != 429 || !strings.Contains(text, "used up") {
		t.Errorf("used up: %d %s", status, text)
	}
}

// A body that does not come is not waited for: its place is free again.
func TestBodiesHaveADeadline(t *testing.T) {
	l := endpoint(t, proxied.Budget{Tokens: 1 << 40}, func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(600 * time.Millisecond) // the control: who has sent all may wait longer for the answer
	})
	l.p.bodies.patience = 200 * time.Millisecond
	for name, body := range map[string]string{"small": "{", "large": "{" + strings.Repeat(" ", heldFree)} {
		c := l.begin(2*heldFree, body)
		if status, text := answered(c); status != 400 || !strings.Contains(text, "read to its end") {
			t.Errorf("%s: %d %s", name, status, text)
		}
	}
	eventually(t, "the places are free", func() bool { return len(l.p.bodies.small)+len(l.p.bodies.large) == 0 })
	if status, text := l.ask("m"); status != 200 {
		t.Errorf("%d %s", status, text)
	}
	l.counted(1)
}

// No more bodies than there are places are held at once. Their places are free when they have left, while the answer
// goes on.
func TestHeldBodiesHavePlaces(t *testing.T) {
	more := make(chan bool)
	l := endpoint(t, proxied.Budget{Tokens: 1 << 40}, func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		<-more
	})
	post := func(size int) <-chan int {
		done := make(chan int, 1)
		go func() {
			resp, err := http.Post("http://"+l.addr+"/v1/messages", "application/json",
				strings.NewReader(`{"model":"m","x":"`+strings.Repeat("x", size)+`"}`))
			if err != nil {
				done <- 0
				return
			}
			resp.Body.Close()
			done <- resp.StatusCode
		}()
		return done
	}
	one := l.servers["one.test"]
	for range maxLarge {
		l.p.bodies.large <- struct{}{}
	}
	large := post(heldFree)
	if status := <-post(1); status != 200 { // control: a small one passes
		t.Errorf("a small one: %d", status)
	}
	select {
	case status := <-large:
		t.Fatalf("%d without a place", status)
	case <-time.After(200 * time.Millisecond):
	}
	if n := len(one.requests()); n != 1 {
		t.Errorf("%d requests arrived", n)
	}
	<-l.p.bodies.large
	if status := <-large; status != 200 { // its answer has begun, and has not ended
		t.Errorf("with a place: %d", status)
	}
	eventually(t, "its place is free", func() bool { return len(l.p.bodies.large) == maxLarge-1 })
	for range maxSmall {
		l.p.bodies.small <- struct{}{}
	}
	small := post(1)
	select {
	case status := <-small:
		t.Errorf("%d without any place", status)
	case <-time.After(200 * time.Millisecond):
	}
	<-l.p.bodies.small
	if status := <-small; status != 200 {
		t.Errorf("with any place: %d", status)
	}
	close(more)
	l.counted(3)
}

// A cut ends the wait for a body, and for a place of one.
func TestACutEndsTheWaitForABody(t *testing.T) {
	for name, body := range map[string]string{"for the body": "{", "for a place": "{" + strings.Repeat(" ", heldFree)} {
		l := endpoint(t, proxied.Budget{Tokens: 1 << 40}, nil)
		for range maxLarge {
			l.p.bodies.large <- struct{}{}
		}
		o := l.p.orders
		o.asks = true
		c := l.begin(2*heldFree, body)
		eventually(t, "it may be made", func() bool {
			o.mu.Lock()
			defer o.mu.Unlock()
			for id, answer := range o.waiting {
				delete(o.waiting, id)
				answer <- ""
				return true
			}
			return false
		})
		eventually(t, "it has a place", func() bool { return len(l.p.bodies.small) == 1 })
		began := time.Now()
		if o.cut([]int{0}); time.Since(began) > cutPatience/2 {
			t.Errorf("%s: it took %v", name, time.Since(began))
		}
		if status, text := answered(c); status != 400 && status != 502 {
			t.Errorf("%s: %d %s", name, status, text)
		}
		if len(l.p.bodies.small) != 0 || len(l.servers["one.test"].requests()) != 0 {
			t.Errorf("%s: %d places are taken, %d requests left", name, len(l.p.bodies.small),
				len(l.servers["one.test"].requests()))
		}
	}
}
