//go:build linux

package main

import (
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"sbx.example/sbx/shared/proxied"
)

// endpoint is a lab whose one.test is an endpoint with an address of its own.
func endpoint(t *testing.T, b proxied.Budget, answer http.HandlerFunc) *lab {
	b.Name = "e"
	l := newLab(t, func(c *proxied.Config) {
		c.Sites[0].Inject, c.Sites[0].Budget = true, &b
		c.Listeners = append(c.Listeners, proxied.Listener{Port: 48480, Site: 0})
	}, answer)
	t.Cleanup(func() { // what they report must find the lab
		m := l.p.sites[0].meter
		m.mu.Lock()
		n := m.spent.Requests
		m.mu.Unlock()
		l.counted(int(n))
	})
	return l
}

// ask sends a request for a model.
func (l *lab) ask(model string) (int, string) {
	l.t.Helper()
	return l.call("POST", "/v1/messages", fmt.Sprintf(`{"model":%q}`, model))
}

func (l *lab) call(method, path, body string) (int, string) {
	l.t.Helper()
	r, err := http.NewRequest(method, "http://"+l.addr+path, strings.NewReader(body))
	if err != nil {
		l.t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		l.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		l.t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// Each API says in its own fields what an answer has cost, whole or as events.
func TestUsage(t *testing.T) {
	event := "text/event-stream"
	for name, x := range map[string]struct {
		typ, body string
		in, out   int64
	}{
		"anthropic": {"application/json",
			`{"id":"x","usage":{"input_tokens":10,"cache_read_input_tokens":5,"output_tokens":7}}`,
			15, 7},
		"anthropic, events": {event, "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":" +
			"{\"input_tokens\":10,\"output_tokens\":1}}}\n\ndata: {\"usage\":{\"output_tokens\":9}}\n\n", 10, 9},
		"openai": {"application/json", `{"usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7}}`, 3, 4},
		"openai, events": {event, "data: {\"type\":\"response.completed\",\"response\":{\"usage\":{\"input_tokens\":6," +
			"\"output_tokens\":2}}}\r\n\r\ndata: [DONE]\r\n", 6, 2},
		"gemini": {"application/json", `{"usageMetadata":{"promptTokenCount":8,"candidatesTokenCount":1,` +
			`"thoughtsTokenCount":2}}`, 8, 3},
		"gemini, a list": {"application/json", `[{"usageMetadata":{"promptTokenCount":8,"candidatesTokenCount":1}},` +
			"\n" + `{"usageMetadata":{"promptTokenCount":8,"candidatesTokenCount":5}}]`, 8, 5},
		"one that says nothing": {"application/json", strings.Repeat("x", 400), 4, 100},
	} {
		l := endpoint(t, proxied.Budget{Prices: map[string]proxied.Price{"*": {In: 100, Out: 200}}},
			func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", x.typ)
				_, _ = io.WriteString(w, x.body)
			})
		if status, body := l.ask("a-model"); status != 200 || body != x.body {
			t.Errorf("%s: %d %q", name, status, body)
		}
		u := l.used(name, func(u proxied.Use) bool { return u.Spent != nil })
		if s := *u.Spent; s.In != x.in || s.Out != x.out || s.Requests != 1 || s.Cents != 1 {
			t.Errorf("%s: %+v", name, s)
		}
		if got := l.servers["one.test"].requests()[0].Header.Get("Authorization"); got != "Bearer "+real {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// Over a bound the answer is in the API's own words, and nothing is asked outside.
func TestBounds(t *testing.T) {
	answer := func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, `{"usage":{"input_tokens":600000,"output_tokens":400000}}`)
	}
	for name, x := range map[string]struct {
		b      proxied.Budget
		ok     int // that pass before
		status int
		word   string
	}{
		"requests":      {proxied.Budget{Requests: 2, API: "anthropic"}, 2, 402, `"type":"billing_error"`},
		"tokens":        {proxied.Budget{Tokens: 1_500_000, API: "openai"}, 2, 429, `"code":"insufficient_quota"`},
		"tokens, exact": {proxied.Budget{Tokens: 1_000_000, API: "openai"}, 1, 429, `"code":"insufficient_quota"`},
		"money": {proxied.Budget{Cents: 150, API: "gemini", Prices: map[string]proxied.Price{"m": {In: 100,
			Out: 100}}}, 2, 429, "RESOURCE_EXHAUSTED"},
		"money, a pattern": {proxied.Budget{Cents: 150, API: "openai", Prices: map[string]proxied.Price{"m*": {In: 100,
			Out: 100}}}, 2, 429, `"code":"insufficient_quota"`},
		"money, no price": {proxied.Budget{Cents: 150, API: "openai", Prices: map[string]proxied.Price{"n*": {In: 100,
			Out: 100}}}, 0, 404, `"code":"model_not_found"`},
		"rate":           {proxied.Budget{Rate: 3, API: "anthropic"}, 3, 429, `"type":"rate_limit_error"`},
		"another model":  {proxied.Budget{Models: []string{"n", "o*"}, API: "openai"}, 0, 404, `"code":"model_not_found"`},
		"a listed model": {proxied.Budget{Models: []string{"n", "m*"}, Requests: 1, API: "openai"}, 1, 429, "quota"},
	} {
		l := endpoint(t, x.b, answer)
		for i := range x.ok {
			if status, body := l.ask("m"); status != 200 {
				t.Fatalf("%s: request %d: %d %s", name, i, status, body)
			}
			l.used("it", func(u proxied.Use) bool { return u.Spent != nil && u.Spent.Requests == int64(i+1) })
		}
		status, body := l.ask("m")
		if status != x.status || !strings.Contains(body, x.word) {
			t.Errorf("%s: %d %s", name, status, body)
		}
		l.used(name, func(u proxied.Use) bool { return u.Refused != "" && u.Endpoint == "e" })
		if n := len(l.servers["one.test"].requests()); n != x.ok {
			t.Errorf("%s: %d requests left, want %d", name, n, x.ok)
		}
	}
}

// The price of a model is that of the longest name that is its own.
func TestPrices(t *testing.T) {
	m := &meter{Budget: &proxied.Budget{Prices: map[string]proxied.Price{"*": {In: 1}, "gpt-5*": {In: 2},
		"gpt-5-mini*": {In: 3}, "gpt-5": {In: 4}}}}
	for model, want := range map[string]int64{"gpt-5": 4, "gpt-5-pro": 2, "gpt-5-mini-x": 3, "gpt-4": 1, "": 1} {
		if got, ok := m.price(model); got.In != want || !ok {
			t.Errorf("%q: %+v %v", model, got, ok)
		}
	}
	delete(m.Prices, "*")
	if got, ok := m.price("gpt-4"); ok {
		t.Errorf("one without: %+v", got)
	}
}

// A minute later requests pass again.
func TestRate(t *testing.T) {
	now := time.Now()
	m := &meter{Budget: &proxied.Budget{Rate: 2}, clocked: func() time.Time { return now }}
	for i, want := range []bool{true, true, false} {
		if d, _ := m.admit(&charge{}); (d == nil) != want {
			t.Errorf("%d: %v", i, d)
		}
	}
	now = now.Add(time.Minute)
	if d, _ := m.admit(&charge{}); d != nil {
		t.Errorf("a minute later: %v", d)
	}
}

// A request that names its model in two ways is none.
func TestAskedIn(t *testing.T) {
	for body, want := range map[string]string{`{"model":"a"}`: "a", `{"x":{"model":"b"},"model":"a"}`: "a", `{}`: "",
		`{"model":"a","model":"b"}`: "!", `{"model":"a","Model":"b"}`: "!", `{"model":["a"]}`: "!", `["model"]`: "!",
		`{"model":"a"`: "!", ``: "", " \n": "", `null`: "!", `{"model":"a"} {}`: "!", `{"model":"a"}}`: "!",
		` {"MODEL":"a"}`: "a", `{"model":null}`: "",
		`{"model":{"model":"a"}}`: "!", `{"model":["a"],"model":"a"}`: "!", `{"\u006dodel":"a","model":"b"}`: "!"} {
		got, err := askedIn([]byte(body))
		if (err != nil) != (want == "!") || err == nil && got.model != want {
			t.Errorf("%s: %+v %v", body, got, err)
		}
	}
	for body, want := range map[string]asked{
		`{"max_tokens":7,"max_completion_tokens":8}`:    {out: 8},
		`{"max_output_tokens":9,"max_output_tokens":1}`: {out: 9},
		`{"generationConfig":{"maxOutputTokens":5}}`:    {out: 5},
		`{"max_tokens":-1}`:                             {}, `{"max_tokens":"x"}`: {},
		`{"max_tokens":99999999999}`: {out: maxAnswered},
		`{"background":false}`:       {}, `{"background":null}`: {},
		`{"background":true,"background":false}`: {background: true}, `{"Background":1}`: {background: true},
	} {
		if got, err := askedIn([]byte(body)); err != nil || got != want {
			t.Errorf("%s: %+v %v", body, got, err)
		}
	}
}

// A large request is looked through as it is: a copy of each that is held would be many.
func TestAskedInCopiesNothing(t *testing.T) {
	body := []byte(`{"model":"a","messages":[{"text":"` + strings.Repeat("x", 8<<20) + `"}]}`)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if got, err := askedIn(body); got.model != "a" || err != nil {
		t.Errorf("%+v %v", got, err)
	}
	if runtime.ReadMemStats(&after); after.TotalAlloc-before.TotalAlloc > 1<<20 {
		t.Errorf("%d bytes were allocated", after.TotalAlloc-before.TotalAlloc)
	}
}
