//go:build linux

package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sbx.example/sbx/selftest/need"
	"sbx.example/sbx/shared/proxied"
)

// A server that answers before it has read a body, and closes, ends neither sbx-proxy nor another request, and what is
// written down of an endpoint is whole.
func TestEarlyAnswersToUploads(t *testing.T) {
	l := endpoint(t, proxied.Budget{}, nil)
	outside, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer outside.Close()
	go func() {
		for {
			c, err := outside.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				in := bufio.NewReader(c)
				if _, err := http.ReadRequest(in); err != nil {
					return
				}
				_, _ = io.WriteString(c, "HTTP/1.1 401 no\r\nContent-Length: 5\r\n\r\nearly")
				_, _ = io.CopyN(io.Discard, in, 100)
			}()
		}
	}()
	l.up.DialContext, l.up.DialTLSContext = nil, dialTo(outside.Addr().String())
	l.up.ForceAttemptHTTP2 = false
	var written bytes.Buffer
	inside := httptest.NewServer((&recorder{to: &written}).around("e", l.p.sites[0].versioned()))
	defer inside.Close()
	var answered atomic.Int64
	put := func() {
		c, err := net.Dial("tcp", inside.Listener.Addr().String())
		if err != nil {
			t.Error(err)
			return
		}
		_ = c.SetDeadline(time.Now().Add(20 * time.Second))
		fmt.Fprint(c, "PUT /v1/x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
		sending := make(chan struct{})
		go func() {
			defer close(sending)
			for range 400 {
				if _, err := io.WriteString(c, "3\r\nabc\r\n"); err != nil {
					return
				}
			}
		}()
		in := bufio.NewReader(c)
		if resp, err := http.ReadResponse(in, nil); err == nil {
			if resp.StatusCode == http.StatusUnauthorized {
				answered.Add(1)
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			if next, err := http.ReadResponse(in, nil); err == nil {
				t.Errorf("the rest of a body was answered: %s", next.Status)
			} else if errors.Is(err, os.ErrDeadlineExceeded) {
				t.Error("the connection stays, and nothing more comes")
			}
		} else if errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error("there is no answer")
		}
		c.Close()
		<-sending
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for i := 0; i < need.Rounds(12, 50) && !t.Failed(); i++ {
				put()
			}
		})
	}
	all.Wait()
	if answered.Load() == 0 {
		t.Error("control: no answer was early")
	}
}
