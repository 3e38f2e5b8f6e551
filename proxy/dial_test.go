//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"sbx.example/sbx/shared/proxied"
)

// TestDeniedAddresses: what a rule denies is connected to by no name, also where a range opens it, and a range opens
// its own ports alone; the first word about an address and a port holds. The controls are other ports, other
// addresses, and no rule.
func TestDeniedAddresses(t *testing.T) {
	a := proxied.Addresses{Closed: []string{"10.0.0.0/8"}, Decided: []proxied.Decided{
		{Prefix: "192.0.2.7/32", Lo: 1, Hi: 65535, Pass: true}, {Prefix: "192.0.2.0/24", Hi: 65535, Deny: true},
		{Prefix: "10.0.0.1/32", Lo: 443, Hi: 443, Deny: true}, {Prefix: "10.0.0.3/32", Lo: 443, Hi: 443},
		{Prefix: "203.0.113.1/32", Lo: 443, Hi: 443}, {Prefix: "10.0.0.0/24", Lo: 443, Hi: 443, Pass: true}}}
	for at, want := range map[string]error{"192.0.2.1:443": errDenied, "[::ffff:192.0.2.1]:443": errDenied,
		"192.0.2.7:443": nil, "192.0.3.1:443": nil, "10.0.0.1:443": errDenied, "10.0.0.2:443": nil,
		"10.0.0.2:8443": errClosed, "10.0.0.3:443": errClosed, "203.0.113.1:443": nil, "10.1.0.1:443": errClosed} {
		g := &gate{}
		if err := g.set(&a); err != nil {
			t.Fatal(err)
		}
		if err := g.check(at, nil); !errors.Is(err, want) || (err == nil) != (want == nil) {
			t.Errorf("%s: %v, want %v", at, err, want)
		}
		g.decided = nil
		if err := g.check(at, nil); errors.Is(err, errDenied) {
			t.Errorf("%s without rules: %v", at, err)
		}
	}
}

// TestChangedAddresses: what a rule denies while the session runs is reached neither by a new connection nor by one
// that stands. Other addresses are the control, and the same one before and after.
func TestChangedAddresses(t *testing.T) {
	o := newOrders(&reports{}, false)
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	host, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	c := &http.Client{Transport: o.gate.transport(host, nil)}
	get := func() error {
		r, err := c.Get("http://" + net.JoinHostPort(host, port))
		if err == nil {
			r.Body.Close()
		}
		return err
	}
	order := func(denied string) {
		text, err := json.Marshal(proxied.Order{Addresses: &proxied.Addresses{Closed: []string{"127.0.0.0/8"},
			Decided: []proxied.Decided{{Prefix: denied, Hi: 65535, Deny: true}}}})
		if err != nil {
			t.Fatal(err)
		}
		o.over = make(chan struct{})
		o.follow(json.NewDecoder(strings.NewReader(string(text))))
	}
	for _, x := range []struct {
		denied string
		want   error
	}{{"192.0.2.0/24", nil}, {"127.0.0.0/8", errDenied}, {"192.0.2.0/24", nil}} {
		order(x.denied)
		if err := get(); !errors.Is(err, x.want) {
			t.Errorf("with %s denied: %v, want %v", x.denied, err, x.want)
		}
	}
}
