//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestRecord: what passes is as it was, streams flow, and of a large body the beginning and the size are kept.
func TestRecord(t *testing.T) {
	var kept bytes.Buffer
	c := &recorder{to: &kept}
	flushed := false
	s := httptest.NewServer(c.around("e", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/plain")
		w.WriteHeader(http.StatusTeapot)
		flushed = http.NewResponseController(w).Flush() == nil
		_, _ = io.WriteString(w, "answer ")
		if n != 3*maxRecorded {
			t.Errorf("the server was sent %d bytes", n)
		}
	})))
	defer s.Close()
	long := strings.NewReader(strings.Repeat("x", 3*maxRecorded))
	r, err := http.NewRequest(http.MethodPost, s.URL+"/v1?key=SECRET", long)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Api-Key", "SECRET")
	r.Header.Set("Content-Type", "a/b")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(answer.Body)
	answer.Body.Close()
	s.Close() // the handler has ended
	var x exchanged
	if err := json.Unmarshal(kept.Bytes(), &x); err != nil {
		t.Fatal(err)
	}
	if string(body) != "answer " || answer.StatusCode != http.StatusTeapot || !flushed {
		t.Errorf("%d %q, flushed %t", answer.StatusCode, body, flushed)
	}
	if x.Endpoint != "e" || x.Method != "POST" || x.Path != "/v1" || x.Status != http.StatusTeapot ||
		x.Request.Type != "a/b" || x.Request.Bytes != 3*maxRecorded || len(x.Request.Body) != maxRecorded ||
		x.Response != (spoken{"text/plain", 7, "answer "}) || strings.Contains(kept.String(), "SECRET") {
		x.Request.Body = ""
		t.Errorf("%+v", x)
	}
	if h := http.NotFoundHandler(); (*recorder)(nil).around("e", h) == nil {
		t.Error("nothing answers where nothing is recorded")
	}
}
