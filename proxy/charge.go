//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"sbx.example/sbx/shared/proxied"
)

// charge is what one request to an endpoint is reckoned to cost until that is known.
type charge struct {
	asks    bool   // it asks for something that costs, and does not only read
	model   string // that it asks; "": it names none
	in, out int64  // tokens
	price   proxied.Price
	sent    atomic.Bool // the server may have it
	settled bool        // its meter has counted what it has cost
}

const (
	bytesOfToken = 4
	usualAnswer  = 4096    // tokens of one that a request sets no bound to
	maxAnswered  = 1 << 20 // tokens that are believed of such a bound
)

func (c *charge) tokens() int64 { return c.in + c.out }

// money is in the units of meter.micro: cents for a million tokens are millionths of a cent for one.
func (c *charge) money(in, out int64) int64 { return in*c.price.In + out*c.price.Out }

// admit says whether a request is within the endpoint's bounds, and else answers it. Where no request is, none is read.
// What is done with ctx is known of the request from then on, and the caller has to call end.
func (s *site) admit(ctx context.Context, w http.ResponseWriter, r *http.Request, x *exchange) (context.Context, bool) {
	no := s.meter.full()
	if no == nil {
		var err error
		if x.charge, err = s.reckon(w, r, x); err == nil {
			no, err = s.meter.await(ctx, x.charge)
		}
		switch {
		case errors.Is(err, errMarked), errors.Is(err, context.Canceled):
			s.failed(w, r, err)
			return ctx, false
		case err != nil:
			no = &denial{kind: unclear, text: err.Error()}
		case no == nil:
			sent := func(httptrace.GotConnInfo) { x.charge.sent.Store(true) }
			return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: sent}), true
		}
	}
	status := no.answer(w, s.meter.API)
	s.p.out.use(proxied.Use{Host: s.Host, Port: s.Port, Method: r.Method, Status: status, Refused: no.text,
		Endpoint: s.meter.Name})
	return ctx, false
}

// end settles a request of which no answer has said what it has cost: the server may have made one.
func (s *site) end(x *exchange) {
	if x.charge.sent.Load() {
		s.settle(x.charge, x.charge.in, x.charge.out, &counted{})
	} else {
		s.settle(x.charge, 0, 0, &counted{})
	}
}

func (s *site) settle(c *charge, in, out int64, answer *counted) {
	if spent, first := s.meter.settle(c, in, out, answer); first {
		s.p.out.use(proxied.Use{Host: s.Host, Port: s.Port, Endpoint: s.meter.Name, Spent: &spent})
	}
}

// count reads from an answer what it has cost. One that does not say so is reckoned by its length, and one that was not
// read to its end by what it could have cost: of events alone no more was made than has come.
func (s *site) count(r *http.Response, x *exchange) {
	c := x.charge
	if r.StatusCode < 200 || r.StatusCode > 299 {
		s.settle(c, 0, 0, &counted{})
		return
	}
	stream := strings.HasPrefix(r.Header.Get("Content-Type"), "text/event-stream")
	r.Body = &counted{ReadCloser: r.Body, stream: stream, done: func(u *counted, whole bool) {
		in, out := u.in, u.out
		if known := whole && in+out > 0; !known && c.asks {
			in, out = max(in, c.in), max(out, u.size/bytesOfToken)
			if !whole && !stream {
				out = max(out, c.out)
			}
		}
		s.settle(c, in, out, u)
	}}
}

// reckon is what a request may cost by what it says. Its body is held where a bound or a price needs that, and where it
// may have the mark of a decoy: the server is not asked at all then.
func (s *site) reckon(w http.ResponseWriter, r *http.Request, x *exchange) (*charge, error) {
	m, c := s.meter, &charge{}
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return c, nil
	}
	c.asks, c.in = true, max(r.ContentLength, 0)/bytesOfToken
	if m.metered() && (r.Method != http.MethodPost || !synchronous(m.API, r.URL.Path)) {
		return nil, errors.New("endpoint " + m.Name + " is for calls whose answers say what they have cost, and not for " +
			r.Method + " " + r.URL.Path)
	}
	if !m.metered() && len(m.Prices) == 0 && len(s.p.conf.Marks) == 0 {
		return c, nil
	}
	body, err := s.p.hold(w, r, x, maxAsked)
	switch {
	case errors.Is(err, errMarked), errors.Is(err, context.Canceled):
		return nil, err
	case errors.Is(err, errLong):
		return nil, errors.New("the request is too long")
	case err != nil:
		return nil, errors.New("the request cannot be read to its end")
	}
	a, err := askedIn(body)
	switch {
	case err != nil && m.metered():
		return nil, err
	case a.background && m.metered():
		return nil, errors.New("endpoint " + m.Name + " counts what answers say that they have cost, " +
			"and one in the background says it later")
	}
	c.model, c.in, c.out = a.model, int64(len(body))/bytesOfToken, usualAnswer
	if a.out > 0 {
		c.out = a.out
	}
	if model, _, ok := modelOf(m.API, r.URL.Path); ok {
		c.model = model
	}
	return c, nil
}

// synchronous says whether a path is that of a call whose answer says what it has cost: no batch, and nothing that is
// only begun.
func synchronous(api, path string) bool {
	if _, verb, ok := modelOf(api, path); ok {
		return slices.Contains([]string{"generateContent", "streamGenerateContent", "countTokens", "embedContent",
			"batchEmbedContents"}, verb)
	}
	return slices.ContainsFunc([]string{"/messages", "/messages/count_tokens", "/chat/completions", "/completions",
		"/responses", "/responses/compact", "/responses/input_tokens", "/embeddings"}, func(end string) bool {
		return strings.HasSuffix(path, end)
	})
}

// modelOf is the model that a path names, and what is asked of it. Gemini's alone do.
func modelOf(api, path string) (model, verb string, ok bool) {
	_, rest, ok := strings.Cut(path, "/models/")
	model, verb, _ = strings.Cut(rest, ":")
	return model, verb, ok && api == "gemini"
}

// maxAsked bounds a request whose body has to be known before it is made.
const maxAsked = 64 << 20

// asked is what the body of a request says of its cost.
type asked struct {
	model      string
	out        int64 // tokens that the answer has at most; 0: it says nothing of that
	background bool  // it does not want to wait for the answer
}

// askedIn reads a body, which is an object or nothing. One that has a model twice means something else to each reader.
// Nothing of the body is copied, which may be large.
func askedIn(body []byte) (asked, error) {
	body = bytes.TrimLeft(body, " \t\r\n")
	switch {
	case len(body) == 0:
		return asked{}, nil
	case body[0] != '{':
		return asked{}, errors.New("the request is not a JSON object")
	}
	var a struct { // in any case
		Model      member `json:"model"`
		Background flag   `json:"background"`
		Tokens     most   `json:"max_tokens"`
		Completion most   `json:"max_completion_tokens"`
		Output     most   `json:"max_output_tokens"`
		Config     struct {
			Output most `json:"maxOutputTokens"`
		} `json:"generationConfig"`
	}
	switch err := json.Unmarshal(body, &a); {
	case err != nil:
		return asked{}, errors.New("the request is not JSON")
	case a.Model.times > 1 || a.Model.odd:
		return asked{}, errors.New("the request names its model in more than one way")
	}
	return asked{a.Model.text, int64(max(a.Tokens, a.Completion, a.Output, a.Config.Output)), bool(a.Background)}, nil
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

// flag is a member that is set if any of its name is.
type flag bool

// UnmarshalJSON takes for set what is not plainly the opposite.
func (f *flag) UnmarshalJSON(b []byte) error {
	*f = *f || string(b) != "false" && string(b) != "null"
	return nil
}

// most is a number: the largest of its name. What is none says nothing.
type most int64

// UnmarshalJSON is called for each that has the name.
func (m *most) UnmarshalJSON(b []byte) error {
	if n, err := strconv.ParseInt(string(b), 10, 64); err == nil {
		*m = max(*m, most(min(n, maxAnswered)))
	}
	return nil
}
