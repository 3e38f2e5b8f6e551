//go:build linux

package main

import (
	"context"
	"io"
	"net/http"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"sbx.example/sbx/shared/proxied"
)

// What an endpoint counts and allows cannot be evaded by a request that its server takes for another one.
func TestAmbiguousRequestsOfEndpoints(t *testing.T) {
	l := endpoint(t, proxied.Budget{Models: []string{"cheap"}, API: "gemini"},
		func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, path.Clean(r.URL.Path)) })
	for _, x := range []struct {
		method, path, head string
		want               int
	}{
		{"POST", "/v1/models/cheap:countTokens", "", 200}, // control
		{"POST", "/v1/models/cheap:/../../messages", "", 403},
		{"POST", "/v1/models/cheap:/%2e%2e/%2E%2E/messages", "", 403},
		{"POST", "/v1//models/cheap:countTokens", "", 403},
		{"GET", "/v1/messages", "X-HTTP-Method-Override", 403},
		{"POST", "/v1/models/cheap:countTokens", "X-Original-URL", 403},
	} {
		r, _ := http.NewRequest(x.method, "http://"+l.addr+x.path, strings.NewReader(`{"model":"dear"}`))
		if x.head != "" {
			r.Header.Set(x.head, "POST")
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != x.want {
			t.Errorf("%s %s %s: %d %s", x.method, x.path, x.head, resp.StatusCode, body)
		}
	}
	if n := len(l.servers["one.test"].requests()); n != 1 {
		t.Errorf("%d requests left, want 1", n)
	}
}

// What goes through a websocket cannot be counted, so an endpoint with bounds has none.
func TestWebsocketsOfEndpoints(t *testing.T) {
	for name, x := range map[string]struct {
		b    proxied.Budget
		want int
	}{
		"bounds": {proxied.Budget{Tokens: 1}, http.StatusNotImplemented},
		"none":   {proxied.Budget{}, http.StatusOK}, // the server does not change the protocol
	} {
		l := endpoint(t, x.b, nil)
		r, _ := http.NewRequest("GET", "http://"+l.addr+"/v1/realtime?model=dear", nil)
		r.Header.Set("Connection", "Upgrade")
		r.Header.Set("Upgrade", "websocket")
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != x.want {
			t.Errorf("%s: %s", name, resp.Status)
		}
	}
}

// Who leaves before an answer ends has used what has come of it.
func TestUnfinishedAnswersAreCounted(t *testing.T) {
	const start = "data: {\"message\":{\"usage\":{\"input_tokens\":10,\"output_tokens\":1}}}\n\n"
	for name, x := range map[string]struct {
		whole bool
		out   int64
	}{"whole": {true, 1}, "left": {false, 25_000}} {
		l := endpoint(t, proxied.Budget{}, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, start+strings.Repeat("x", 100_000))
			w.(http.Flusher).Flush()
			if !x.whole {
				<-r.Context().Done()
			}
		})
		resp, err := http.Post("http://"+l.addr+"/v1/messages", "application/json", strings.NewReader(`{"model":"m"}`))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.CopyN(io.Discard, resp.Body, int64(len(start)+100_000)); err != nil {
			t.Error(err)
		}
		if x.whole {
			_, _ = io.Copy(io.Discard, resp.Body)
		}
		resp.Body.Close()
		u := l.used(name, func(u proxied.Use) bool { return u.Spent != nil })
		if u.Spent.In != 10 || u.Spent.Out < x.out || x.whole && u.Spent.Out != x.out {
			t.Errorf("%s: %+v", name, u.Spent)
		}
	}
}

// Each method counts. Where a bound is about what a request asks for, only calls pass whose answers say what they have
// cost; a stored answer is counted once.
func TestEveryMethodIsCounted(t *testing.T) {
	for _, method := range []string{"GET", "HEAD", "PUT", "DELETE", "POST"} {
		for name, b := range map[string]proxied.Budget{"requests": {Requests: 1}, "rate": {Rate: 1}} {
			l := endpoint(t, b, nil)
			for i, want := range []int{200, 429} {
				if status, text := l.call(method, "/v1/files/x", ""); status != want {
					t.Errorf("%s, %s, %d: %d %s", name, method, i, status, text)
				}
			}
		}
	}
}

func TestCallsThatSayTheirCost(t *testing.T) {
	bounds := map[string]proxied.Budget{"tokens": {Tokens: 1 << 40}, "models": {Models: []string{"m"}},
		"money": {Cents: 1 << 30, Prices: map[string]proxied.Price{"m": {}}}, "none": {Requests: 9}}
	for _, x := range []struct {
		api, request, body string
		bounded            int // the status with a bound
	}{
		{"openai", "POST /v1/responses", `{"model":"m"}`, 200}, // controls
		{"openai", "GET /v1/models", ``, 200},
		{"gemini", "POST /v1beta/models/m:streamGenerateContent", `{}`, 200},
		{"anthropic", "POST /v1/messages", `{"model":"m"}`, 200},
		{"openai", "POST /v1/responses", `{"model":"m","background":true}`, 400},
		{"openai", "POST /v1/batches", `{"model":"m"}`, 400},
		{"openai", "POST /v1/models/m:generateContent", `{"model":"m"}`, 400},
		{"openai", "PUT /v1/responses", `{"model":"m"}`, 400},
		{"openai", "DELETE /v1/files/x", ``, 400},
		{"anthropic", "POST /v1/messages/batches", `{"model":"m"}`, 400},
		{"gemini", "POST /v1beta/models/m:batchGenerateContent", `{"model":"m"}`, 400},
		{"gemini", "POST /v1beta/models/other:generateContent", `{"model":"m"}`, 404},
	} {
		for name, b := range bounds {
			b.API = x.api
			l := endpoint(t, b, nil)
			method, path, _ := strings.Cut(x.request, " ")
			want := x.bounded
			if name == "none" || name == "tokens" && want == 404 {
				want = 200
			}
			if status, text := l.call(method, path, x.body); status != want {
				t.Errorf("%s, %s %s: %d %s, want %d", name, x.request, x.body, status, text, want)
			}
		}
	}
}

func TestStoredAnswersAreCountedOnce(t *testing.T) {
	l := endpoint(t, proxied.Budget{}, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, `{"id":"`+path.Base(r.URL.Path)+`","usage":{"input_tokens":1,"output_tokens":2}}`)
	})
	for i, x := range []struct {
		request string
		out     int64
	}{{"GET /v1/responses/r1", 2}, {"GET /v1/responses/r1", 2}, {"GET /v1/responses/r2", 4}, {"POST /v1/responses", 6},
		{"GET /v1/responses/responses", 6}, {"POST /v1/responses", 8}} {
		method, path, _ := strings.Cut(x.request, " ")
		l.call(method, path, "")
		u := l.used(x.request, func(u proxied.Use) bool { return u.Spent != nil && u.Spent.Requests == int64(i+1) })
		if u.Spent.Out != x.out {
			t.Errorf("%d, %s: %+v", i, x.request, u.Spent)
		}
	}
}

// Who leaves before an answer has begun is charged what it could have cost, unless the server says that it made none.
func TestUnansweredRequestsAreCharged(t *testing.T) {
	for name, x := range map[string]struct {
		status  int // 0: none
		in, out int64
	}{"left": {0, 10, 500}, "refused": {503, 0, 0}, "answered": {200, 1, 2}} {
		asked := make(chan bool)
		l := endpoint(t, proxied.Budget{Tokens: 10_000}, func(w http.ResponseWriter, r *http.Request) {
			close(asked)
			if x.status == 0 {
				<-r.Context().Done()
				return
			}
			w.WriteHeader(x.status)
			_, _ = io.WriteString(w, `{"usage":{"input_tokens":1,"output_tokens":2}}`)
		})
		ctx, leave := context.WithCancel(t.Context())
		r, _ := http.NewRequestWithContext(ctx, "POST", "http://"+l.addr+"/v1/messages",
			strings.NewReader(`{"model":"m","max_tokens":500,"x":"1234"}`))
		done := make(chan bool)
		go func() {
			defer close(done)
			if resp, err := http.DefaultClient.Do(r); err == nil {
				_, _ = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
		}()
		<-asked
		if x.status == 0 {
			leave()
		}
		<-done
		leave()
		u := l.used(name, func(u proxied.Use) bool { return u.Spent != nil })
		if u.Spent.In != x.in || u.Spent.Out != x.out || u.Spent.Requests != 1 {
			t.Errorf("%s: %+v", name, u.Spent)
		}
	}
}

// Requests at once do not exceed a bound: near it one is made at a time.
func TestRequestsAtOnce(t *testing.T) {
	const many = 30
	for name, x := range map[string]struct {
		tokens int64
		want   int32
	}{"a bound": {5000, 3}, "one that is far away": {1 << 40, many}} {
		var under, most, passed atomic.Int32
		l := endpoint(t, proxied.Budget{Tokens: x.tokens, API: "openai"}, func(w http.ResponseWriter, r *http.Request) {
			if n := under.Add(1); n > most.Load() {
				most.Store(n)
			}
			defer under.Add(-1)
			_, _ = io.WriteString(w, `{"usage":{"input_tokens":1000,"output_tokens":1000}}`)
		})
		var all sync.WaitGroup
		for range many {
			all.Go(func() {
				switch status, text := l.ask("m"); status {
				case 200:
					passed.Add(1)
				case 429:
				default:
					t.Errorf("%d %s", status, text)
				}
			})
		}
		all.Wait()
		if passed.Load() != x.want || x.want < many && most.Load() != 1 {
			t.Errorf("%s: %d passed, %d of them at once", name, passed.Load(), most.Load())
		}
	}
}

// What rules are about is the path that leaves, with that of the endpoint's address before it.
func TestPathsOfEndpoints(t *testing.T) {
	for _, x := range []struct {
		prefix, rule, path, arrives string
	}{
		{"", "GET /public/**", "/public/a%20b", "/public/a%20b"}, // control
		{"/api", "GET /api/public/**", "/public/a%20b", "/api/public/a%20b"},
		{"/private%20x", "GET /*/public/**", "/public/a", "/private%20x/public/a"},
		{"/private%20x", "GET /public/**", "/public/a", ""},
		{"/api", "GET /api/**", "/../admin", ""},
		{"/api", "GET /api/**", "/%2e%2e/admin", ""},
	} {
		l := endpoint(t, proxied.Budget{}, nil)
		l.p.sites[0].Prefix, l.p.secrets[0].Allow = x.prefix, []string{x.rule}
		r, err := http.NewRequest("GET", "http://"+l.addr+x.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		got := ""
		for _, r := range l.servers["one.test"].requests() {
			got = r.URL.EscapedPath()
		}
		if got != x.arrives || (resp.StatusCode == 200) != (x.arrives != "") {
			t.Errorf("%+v: %s, %q arrived", x, resp.Status, got)
		}
	}
}

// Where nothing has to be known of a body it passes as it is.
func TestOtherBodies(t *testing.T) {
	for name, x := range map[string]struct {
		b          proxied.Budget
		body, path string
		want       int
	}{
		"none":                      {proxied.Budget{}, "", "/v1/responses/r1/cancel", 200},
		"a form":                    {proxied.Budget{}, "--x\r\n", "/v1/audio/transcriptions", 200},
		"a form, and requests":      {proxied.Budget{Requests: 9}, "--x\r\n", "/v1/audio/transcriptions", 200},
		"a form, and prices":        {proxied.Budget{Prices: map[string]proxied.Price{"*": {}}}, "--x\r\n", "/v1/x", 200},
		"none, and tokens":          {proxied.Budget{Tokens: 9}, "", "/v1/responses", 200},
		"none, and another model":   {proxied.Budget{Models: []string{"m"}}, "", "/v1/responses", 404},
		"no object where it counts": {proxied.Budget{Tokens: 9}, "--x\r\n", "/v1/responses", 400},
	} {
		l := endpoint(t, x.b, nil)
		if status, text := l.call("POST", x.path, x.body); status != x.want {
			t.Errorf("%s: %d %s", name, status, text)
		}
		if x.want != 200 {
			continue
		}
		o := l.servers["one.test"]
		o.mu.Lock()
		if o.body[0] != x.body {
			t.Errorf("%s: %q arrived", name, o.body[0])
		}
		o.mu.Unlock()
	}
}
