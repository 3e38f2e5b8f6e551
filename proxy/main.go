//go:build linux

// Command sbx-proxy puts credentials into requests that leave a sandbox, so that they need not be inside. sbx starts it
// for a run with --with or --endpoint, with sockets that were made in the sandbox's network namespace. It is what
// speaks HTTP and TLS with programs inside and servers outside; the broker, which decides, does not. It also keeps the
// user's secrets, in sealed files or in the keyring. It must never be set-user-id, never write a secret's value
// anywhere but there and into a request of a host that it was granted for, and never connect to another host.
//
// It exists for its libraries and for what it parses: net/http and crypto/tls would cost every start of sbx, and
// hostile requests are read by a process that can do nothing else.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/shared/proxied"
)

const usage = `usage: sbx-proxy serve
       sbx-proxy seal DIR NAME | reseal DIR KEY | open DIR | unlock DIR | lock DIR | unlocked DIR
       sbx-proxy keyring BUS | keep BUS NAME | fetch BUS NAME | forget BUS NAME
all of them by sbx alone: see sbx secret --help
`

// statusUsage is the exit status for what was typed wrongly.
const statusUsage = 2

func main() { os.Exit(run(os.Args[1:])) }

func run(args []string) int {
	// Nobody of the same user can read this process's memory or attach to it, and nothing of it reaches a disk.
	err := errors.Join(unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0),
		unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}))
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "sbx-proxy: keeping others from reading its memory:", err)
		return 1
	case len(args) == 1 && args[0] == "serve":
		return serve()
	}
	verbs := map[string]func(store) error{"open": store.open,
		"unlock": store.unlock, "lock": store.lock, "unlocked": store.unlocked}
	do := keyringVerb(args)
	switch {
	case do != nil:
	case len(args) == 2 && verbs[args[0]] != nil:
		do = func() error { return verbs[args[0]](store{args[1]}) }
	case len(args) == 3 && args[0] == "seal":
		do = func() error { return store{args[1]}.seal(args[2]) }
	case len(args) == 3 && args[0] == "reseal":
		do = func() error { return store{args[1]}.reseal(args[2], os.Stdin, os.Stdout) }
	default:
		fmt.Fprint(os.Stderr, usage)
		return statusUsage
	}
	if err := do(); err != nil {
		fmt.Fprintln(os.Stderr, "sbx: "+err.Error())
		return status(err)
	}
	return 0
}

// serve answers until sbx closes its end of the configuration.
func serve() int {
	conf, out := os.NewFile(proxied.FdConfig, "configuration"), &reports{to: os.NewFile(proxied.FdReport, "reports")}
	in := json.NewDecoder(conf)
	var c proxied.Config
	var p *proxy
	err := in.Decode(&c)
	if err == nil {
		p, err = begin(&c, out)
	}
	if err != nil {
		out.send(proxied.Report{Failed: err.Error()})
		return 1
	}
	p.orders.follow(in) // its end is the session's
	p.finish(time.Second)
	return 0
}

// begin reads the secrets, gives up what is not needed any more, and serves.
func begin(c *proxied.Config, out *reports) (*proxy, error) {
	p := &proxy{conf: c, out: out, orders: newOrders(out, c.Asks)}
	p.orders.told = p.told
	for i, s := range c.Secrets {
		f := os.NewFile(uintptr(proxied.FdFirst+i), s.Name)
		if err := p.read(f, s); err != nil {
			return nil, fmt.Errorf("secret %s: %w", s.Name, err)
		}
	}
	var listeners []net.Listener
	for i := range c.Listeners {
		f := os.NewFile(uintptr(proxied.FdFirst+len(c.Secrets)+i), "listener")
		l, err := net.FileListener(f)
		f.Close()
		if err != nil {
			return nil, fmt.Errorf("listening inside: %w", err)
		}
		listeners = append(listeners, l)
	}
	if c.Record {
		p.record = &recorder{to: os.NewFile(uintptr(proxied.FdFirst+len(c.Secrets)+len(c.Listeners)), "record")}
	}
	roots, err := readRoots(c.Roots)
	if err != nil {
		return nil, err
	}
	if err := p.orders.gate.set(&c.Addresses); err != nil {
		return nil, err
	}
	p.upstream = func(s *proxied.Site) http.RoundTripper { return p.orders.gate.transport(s.Host, roots) }
	if err := p.prepare(); err != nil {
		return nil, err
	}
	if err := confine(c); err != nil {
		return nil, err
	}
	for i, l := range listeners {
		go p.listen(l, c.Listeners[i])
	}
	ready := &proxied.Ready{}
	if p.ca != nil {
		ready.CA = p.ca.pem
	}
	out.send(proxied.Report{Ready: ready})
	return p, nil
}
