//go:build linux

package main

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"sbx.example/sbx/shared/proxied"
)

// orders are what sbx says while the session runs: whether a request may be made, where that is asked, and which of
// those that are under way have to end.
type orders struct {
	out  *reports
	asks bool
	told func(*proxied.Tokens)
	gate *gate         // whose addresses change
	over chan struct{} // closed when nothing more is said

	mu      sync.Mutex
	last    uint64
	waiting map[uint64]chan string
	live    map[*exchange]func() // what ends those that are under way
}

func newOrders(out *reports, asks bool) *orders {
	return &orders{out: out, asks: asks, gate: &gate{}, over: make(chan struct{}), waiting: map[uint64]chan string{},
		live: map[*exchange]func(){}}
}

// follow carries orders out until sbx closes its end.
func (o *orders) follow(in *json.Decoder) {
	defer close(o.over)
	for {
		var x proxied.Order
		if in.Decode(&x) != nil {
			return
		}
		switch {
		case len(x.Cut) > 0:
			go o.cut(x.Cut) // what is cut may wait for tokens; sbx says one at a time
			continue
		case x.Tokens != nil:
			o.told(x.Tokens)
			continue
		case x.Addresses != nil:
			if o.gate.set(x.Addresses) != nil {
				os.Exit(1) // nobody knows to what may be connected
			}
			continue
		}
		o.mu.Lock()
		answer := o.waiting[x.ID]
		delete(o.waiting, x.ID)
		o.mu.Unlock()
		if answer != nil {
			answer <- x.Why
		}
	}
}

// begin has a request wait until it may be made. why says why it may not; end has to be called in any case.
func (o *orders) begin(w http.ResponseWriter, r *http.Request, x *exchange) (_ context.Context, end func(),
	why string) {
	ctx := r.Context()
	if o == nil || !o.asks {
		return ctx, func() {}, ""
	}
	ctx, cancel := context.WithCancel(ctx)
	answer := make(chan string, 1)
	o.mu.Lock()
	o.last++
	id := o.last
	o.waiting[id], o.live[x] = answer, func() {
		cancel()
		// Else it would wait for what the client has still to send.
		_ = http.NewResponseController(w).SetReadDeadline(time.Now())
	}
	o.mu.Unlock()
	end = func() {
		cancel()
		o.mu.Lock()
		defer o.mu.Unlock()
		delete(o.waiting, id)
		delete(o.live, x)
	}
	o.out.send(proxied.Report{May: &proxied.May{ID: id, Site: x.site}})
	select {
	case why = <-answer:
	case <-ctx.Done():
		why = "the request has ended"
	}
	return ctx, end, why
}

// alone has a request go on when its client leaves: the server may have done what it was asked, and what it says then
// must not be lost. A cut ends it.
func (o *orders) alone(ctx context.Context, x *exchange) (context.Context, func()) {
	own, cancel := context.WithTimeout(context.WithoutCancel(ctx), askPatience)
	if o == nil || !o.asks {
		return own, cancel
	}
	o.mu.Lock()
	end := o.live[x]
	o.live[x] = func() { end(); cancel() }
	o.mu.Unlock()
	if ctx.Err() != nil {
		cancel()
	}
	return own, cancel
}

// cutPatience is how long what is cut may take to end. Then the program ends, and with it everything.
const cutPatience = 5 * time.Second

// cut ends the requests to sites, and says when they have ended.
func (o *orders) cut(sites []int) {
	under := func(do func(func())) (n int) {
		o.mu.Lock()
		defer o.mu.Unlock()
		for x, cancel := range o.live {
			if slices.Contains(sites, x.site) {
				do(cancel)
				n++
			}
		}
		return n
	}
	under(func(cancel func()) { cancel() })
	for end := time.Now().Add(cutPatience); under(func(func()) {}) > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			os.Exit(1)
		}
	}
	o.out.send(proxied.Report{Cut: true})
}
