//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
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
	micro   int64       // money, in millionths of a cent
	minute  []time.Time // requests of the last one
	clocked func() time.Time
}

// bounded says whether there is a bound that requests could exceed.
func (m *meter) bounded() bool {
	return len(m.Models) > 0 || m.Requests > 0 || m.Tokens > 0 || m.Cents > 0 || m.Rate > 0
}

// denial is why a request is not made, in a word that each API has its own for.
type denial struct{ kind, text string }

// Kinds of denial.
const (
	overBudget = "budget"
	tooFast    = "rate"
	noModel    = "model"
	unclear    = "request"
)

// admit counts a request, or says why it is not made. What is under way is ended by nobody, so requests that overlap
// may use a little more than the budget.
func (m *meter) admit(model string) *denial {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.Models) > 0 && !matchModel(m.Models, model) {
		return &denial{kind: noModel, text: "endpoint " + m.Name + " does not allow the model " + strconv.Quote(model)}
	}
	if _, ok := m.price(model); m.Cents > 0 && !ok {
		return &denial{kind: noModel, text: "endpoint " + m.Name + " has no price for the model " + strconv.Quote(model)}
	}
	now := m.clocked()
	if no := m.fullAt(now); no != nil {
		return no
	}
	m.spent.Requests++
	m.minute = append(m.minute, now)
	return nil
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

// add counts the tokens of an answer.
func (m *meter) add(model string, in, out int64) proxied.Spent {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.spent.In += in
	m.spent.Out += out
	price, _ := m.price(model)
	m.micro += in*price.In + out*price.Out // cents for a million tokens are millionths of a cent for one
	m.spent.Cents = (m.micro + microcents - 1) / microcents
	return m.spent
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

// maxAsked bounds a request whose model has to be known before it is made.
const maxAsked = 64 << 20

// modelOf is the model that a request names: in its path, or in its body, which is held then.
func (s *site) modelOf(w http.ResponseWriter, r *http.Request, x *exchange) (string, error) {
	if _, rest, ok := strings.Cut(r.URL.Path, "/models/"); ok {
		name, _, _ := strings.Cut(rest, ":")
		return name, nil
	}
	body, err := s.p.hold(w, r, x, maxAsked)
	switch {
	case err == nil:
		return modelIn(body)
	case errors.Is(err, errMarked), errors.Is(err, context.Canceled):
		return "", err
	case errors.Is(err, errLong):
		return "", errors.New("the request is too long")
	}
	return "", errors.New("the request cannot be read to its end")
}

// modelIn is the member "model" of an object. One that has it twice means something else to each reader. Nothing of the
// body is copied, which may be large.
func modelIn(body []byte) (string, error) {
	if !bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("{")) {
		return "", errors.New("the request is not a JSON object")
	}
	var asked struct {
		Model member `json:"model"` // in any case
	}
	switch err := json.Unmarshal(body, &asked); {
	case err != nil:
		return "", errors.New("the request is not JSON")
	case asked.Model.times > 1 || asked.Model.odd:
		return "", errors.New("the request names its model in more than one way")
	}
	return asked.Model.text, nil
}

// member is one of an object that has to be a text, and there once.
type member struct {
	text  string
	times int
	odd   bool
}

// UnmarshalJSON is called for each that has the name.
func (m *member) UnmarshalJSON(b []byte) error {
	m.times++
	m.odd = m.odd || json.Unmarshal(b, &m.text) != nil
	return nil
}
