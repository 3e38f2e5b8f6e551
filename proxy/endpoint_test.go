//go:build linux

package main

import (
	"io"
	"net/http"
	"path"
	"strings"
	"testing"

	"sbx.example/sbx/shared/proxied"
)

// What an endpoint counts and allows cannot be evaded by a request that its server takes for another one.
func TestAmbiguousRequestsOfEndpoints(t *testing.T) {
	l := endpoint(t, proxied.Budget{Models: []string{"cheap"}, API: "anthropic"},
		func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, path.Clean(r.URL.Path)) })
	for _, x := range []struct {
		method, path, head string
		want               int
	}{
		{"POST", "/v1/models/cheap:x", "", 200}, // control
		{"POST", "/v1/models/cheap:/../../messages", "", 403},
		{"POST", "/v1/models/cheap:/%2e%2e/%2E%2E/messages", "", 403},
		{"POST", "/v1//models/cheap:x", "", 403},
		{"GET", "/v1/messages", "X-HTTP-Method-Override", 403},
		{"POST", "/v1/models/cheap:x", "X-Original-URL", 403},
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
