//go:build linux

package main

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"sbx.example/sbx/shared/proxied"
)

// meter counts what a session uses of an endpoint.
type meter struct {
	*proxied.Budget
	mu      sync.Mutex
	spent   proxied.Spent
	micro   int64           // money, in millionths of a cent
	minute  []time.Time     // requests of the last one
	under   int             // requests under way that cost
	held    int64           // tokens that these may cost
	heldFor int64           // and the money, like micro
	freed   chan struct{}   // closed when one of them has ended; nil: nobody waits for that
	answers map[string]bool // that were counted, by what they call themselves
	clocked func() time.Time
}

// bounded says whether there is a bound that requests could exceed.
func (m *meter) bounded() bool {
	return m.metered() || m.Requests > 0 || m.Rate > 0
}

// metered says whether a bound is about what requests ask for.
func (m *meter) metered() bool { return len(m.Models) > 0 || m.Tokens > 0 || m.Cents > 0 }

// denial is why a request is not made, in a word that each API has its own for.
type denial struct{ kind, text string }

// Kinds of denial.
const (
	overBudget = "budget"
	tooFast    = "rate"
	noModel    = "model"
	unclear    = "request"
)

// await has a request wait until it may be made, or says why it is not.
func (m *meter) await(ctx context.Context, c *charge) (*denial, error) {
	for {
		no, freed := m.admit(c)
		if freed == nil {
			return no, nil
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// admit counts a request, or says why it is not made, or what it has to wait for: what may exceed a bound is made
// alone. It may use a little more then, as nobody ends what is under way.
func (m *meter) admit(c *charge) (no *denial, freed <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	priced := false
	c.price, priced = m.price(c.model)
	switch {
	case c.asks && len(m.Models) > 0 && !matchModel(m.Models, c.model):
		return &denial{kind: noModel, text: "endpoint " + m.Name + " does not allow the model " +
			strconv.Quote(c.model)}, nil
	case c.asks && m.Cents > 0 && !priced:
		return &denial{kind: noModel, text: "endpoint " + m.Name + " has no price for the model " +
			strconv.Quote(c.model)}, nil
	}
	now := m.clocked()
	if no := m.fullAt(now); no != nil {
		return no, nil
	}
	money := c.money(c.in, c.out)
	if c.asks && m.under > 0 && (m.Tokens > 0 && m.spent.In+m.spent.Out+m.held+c.tokens() > m.Tokens ||
		m.Cents > 0 && m.micro+m.heldFor+money > m.Cents*microcents) {
		if m.freed == nil {
			m.freed = make(chan struct{})
		}
		return nil, m.freed
	}
	m.spent.Requests++
	m.minute = append(m.minute, now)
	if c.asks {
		m.under, m.held, m.heldFor = m.under+1, m.held+c.tokens(), m.heldFor+money
	}
	return nil, nil
}

// full says why no request is made at all now.
func (m *meter) full() *denial {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.fullAt(m.clocked())
}

// fullAt is full; m.mu is held.
func (m *meter) fullAt(now time.Time) *denial {
	for len(m.minute) > 0 && now.Sub(m.minute[0]) >= time.Minute {
		m.minute = m.minute[1:]
	}
	over := func(what string, limit int64) *denial {
		return &denial{kind: overBudget, text: "the session's budget of " + what + " for endpoint " + m.Name +
			" is used up (" +
			strconv.FormatInt(limit, 10) + ")"}
	}
	switch {
	case m.Requests > 0 && m.spent.Requests >= m.Requests:
		return over("requests", m.Requests)
	case m.Tokens > 0 && m.spent.In+m.spent.Out >= m.Tokens:
		return over("tokens", m.Tokens)
	case m.Cents > 0 && m.micro >= m.Cents*microcents:
		return over("money, in cents,", m.Cents)
	case m.Rate > 0 && int64(len(m.minute)) >= m.Rate:
		return &denial{kind: tooFast, text: "endpoint " + m.Name + " takes " + strconv.FormatInt(m.Rate, 10) +
			" requests a minute"}
	}
	return nil
}

// microcents are what a cent has.
const microcents = 1_000_000

// settle counts what a request has cost, once. What is only read may have been counted when it was made.
func (m *meter) settle(c *charge, in, out int64, answer *counted) (spent proxied.Spent, first bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if c.settled {
		return m.spent, false
	}
	c.settled = true
	if c.asks {
		m.under, m.held, m.heldFor = m.under-1, m.held-c.tokens(), m.heldFor-c.money(c.in, c.out)
		if m.freed != nil {
			close(m.freed)
			m.freed = nil
		}
	} else if c.price, _ = m.price(answer.model); m.answers[answer.id] {
		in, out = 0, 0
	}
	if answer.id != "" {
		if m.answers == nil {
			m.answers = map[string]bool{}
		}
		m.answers[answer.id] = true
	}
	m.spent.In += in
	m.spent.Out += out
	m.micro += c.money(in, out)
	m.spent.Cents = (m.micro + microcents - 1) / microcents
	return m.spent, true
}

// price is what a model costs: as the longest name says that is its own.
func (m *meter) price(model string) (proxied.Price, bool) {
	best, found := "", false
	for name := range m.Prices {
		if namesModel(name, model) && (!found || name == model || len(name) > len(best) && best != model) {
			best, found = name, true
		}
	}
	return m.Prices[best], found
}

// matchModel says whether a list has a model.
func matchModel(list []string, model string) bool {
	return slices.ContainsFunc(list, func(name string) bool { return namesModel(name, model) })
}

// namesModel says whether a name is a model's; it may end in *.
func namesModel(name, model string) bool {
	head, ok := strings.CutSuffix(name, "*")
	return name == model || ok && strings.HasPrefix(model, head)
}

// answer says no as the API itself would.
func (d *denial) answer(w http.ResponseWriter, api string) int {
	status, body := d.words(api)
	w.Header().Set("Content-Type", "application/json")
	if d.kind == tooFast {
		w.Header().Set("Retry-After", "60")
	}
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
	return status
}

func (d *denial) words(api string) (int, any) {
	type words struct {
		status int
		word   string
	}
	table := map[string]map[string]words{
		"anthropic": {overBudget: {402, "billing_error"}, tooFast: {429, "rate_limit_error"}, noModel: {404,
			"not_found_error"},
			unclear: {400, "invalid_request_error"}},
		"gemini": {overBudget: {429, "RESOURCE_EXHAUSTED"}, tooFast: {429, "RESOURCE_EXHAUSTED"}, noModel: {404, "NOT_FOUND"},
			unclear: {400, "INVALID_ARGUMENT"}},
		"openai": {overBudget: {429, "insufficient_quota"}, tooFast: {429, "rate_limit_exceeded"},
			noModel: {404, "model_not_found"}, unclear: {400, "invalid_request_error"}},
	}
	by, ok := table[api]
	if !ok {
		by = table["openai"]
	}
	x, text := by[d.kind], "sbx: "+d.text
	switch api {
	case "anthropic":
		return x.status, map[string]any{"type": "error", "error": map[string]string{"type": x.word, "message": text}}
	case "gemini":
		return x.status, map[string]any{"error": map[string]any{"code": x.status, "message": text, "status": x.word}}
	}
	return x.status, map[string]any{"error": map[string]any{"message": text, "type": x.word, "code": x.word, "param": nil}}
}
