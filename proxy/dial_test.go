//go:build linux

package main

import (
	"errors"
	"testing"

	"sbx.example/sbx/shared/proxied"
)

// TestDeniedAddresses: what a rule denies is connected to by no name, also where a range opens it; the first word about
// an address and a port holds. The controls are other ports, other addresses, and no rule.
func TestDeniedAddresses(t *testing.T) {
	c := proxied.Config{Closed: []string{"10.0.0.0/8"}, Open: []string{"10.0.0.0/24"}, Decided: []proxied.Decided{
		{Prefix: "192.0.2.7/32", Lo: 1, Hi: 65535, Pass: true}, {Prefix: "192.0.2.0/24", Hi: 65535},
		{Prefix: "10.0.0.1/32", Lo: 443, Hi: 443}, {Prefix: "10.1.0.0/16", Lo: 443, Hi: 443, Pass: true}}}
	for at, want := range map[string]error{"192.0.2.1:443": errDenied, "[::ffff:192.0.2.1]:443": errDenied,
		"192.0.2.7:443": nil, "192.0.3.1:443": nil, "10.0.0.1:443": errDenied, "10.0.0.1:8443": nil, "10.0.0.2:443": nil,
		"10.1.0.1:443": errClosed} {
		g, err := newGate(&c)
		if err != nil {
			t.Fatal(err)
		}
		if err := g.check("tcp", at, nil); !errors.Is(err, want) || (err == nil) != (want == nil) {
			t.Errorf("%s: %v, want %v", at, err, want)
		}
		g.decided = nil
		if err := g.check("tcp", at, nil); errors.Is(err, errDenied) {
			t.Errorf("%s without rules: %v", at, err)
		}
	}
}
