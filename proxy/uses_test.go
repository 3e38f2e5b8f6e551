//go:build linux

package main

import (
	"context"
	"crypto/x509"
	"net/http"
	"strings"
	"testing"

	"sbx.example/sbx/shared/proxied"
)

// A use is on record before its server can answer, and so it is where the program leaves before the answer.
func TestUsesWithoutAnswers(t *testing.T) {
	sent := func(u proxied.Use) bool { return u.Sent && u.Secret == "one" && u.Method == http.MethodDelete }
	for _, h2 := range []bool{false, true} {
		asked, over := make(chan string, 1), make(chan struct{})
		l := newLab(t, nil, func(w http.ResponseWriter, r *http.Request) {
			asked <- r.Header.Get("Authorization")
			<-over
		})
		ctx, leave := context.WithCancel(t.Context())
		r, _ := http.NewRequestWithContext(ctx, http.MethodDelete, "https://one.test/", nil)
		r.Header.Set("Authorization", "Bearer "+ghost)
		left := make(chan error, 1)
		go func() {
			_, err := l.client(h2).Do(r)
			left <- err
		}()
		if got := <-asked; got != "Bearer "+real {
			t.Fatal(got)
		}
		l.used("what has no answer yet", sent)
		leave()
		if <-left == nil {
			t.Fatal("the program has stayed")
		}
		u := l.used("what has none", func(u proxied.Use) bool { return u.Left != "" })
		if close(over); u.Secret != "one" || u.Status != 0 {
			t.Errorf("HTTP/2 %v: %+v", h2, u)
		}
	}
}

// A use has one report of itself and one of what came of it, each with the credential's name.
func TestUsesAndAnswers(t *testing.T) {
	for name, trusted := range map[string]bool{"answered": true, "not made": false} {
		l := newLab(t, nil, nil)
		if !trusted {
			l.up.TLSClientConfig.RootCAs = x509.NewCertPool()
		}
		l.do(l.client(true), "GET", "https://one.test/", map[string]string{"Authorization": "Bearer " + ghost}, nil)
		u := l.used(name, func(u proxied.Use) bool { return u.Status != 0 })
		if u.Secret != "one" || trusted != (u.Failed == "") {
			t.Errorf("%s: %+v", name, u)
		}
		l.mu.Lock()
		if len(l.uses) != 2 || !l.uses[0].Sent || l.uses[0].Secret != "one" {
			t.Errorf("%s: %+v", name, l.uses)
		}
		l.mu.Unlock()
		l.do(l.client(true), "GET", "https://one.test/none", nil, nil) // control: what has no value in it is no use
		l.do(l.client(true), "GET", "https://one.test/"+ghost, nil, nil)
		l.used("what has strayed", func(u proxied.Use) bool { return u.Strayed })
		l.mu.Lock()
		for _, u := range l.uses[2:] {
			if u.Sent || u.Secret != "" && !u.Strayed || strings.Contains(u.Host, "two") {
				t.Errorf("%s: %+v", name, u)
			}
		}
		l.mu.Unlock()
	}
}
