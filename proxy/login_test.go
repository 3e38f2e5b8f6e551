//go:build linux

package main

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"filippo.io/age"

	"sbx.example/sbx/shared/proxied"
)

// newLogin is a lab with a login at three.test, whose tokens one.test takes.
func newLogin(t *testing.T, answer http.HandlerFunc) *lab {
	return newLab(t, func(c *proxied.Config) {
		c.Secrets = []proxied.Secret{{Name: "me", Fields: []string{"access_token", "refresh_token"},
			Allow: []string{"GET /x", "GET /other"}}}
		c.Sites[0].Places = []proxied.Place{{Secret: "me", Header: "Authorization", Format: "Bearer {}"}}
		c.Sites = append(c.Sites, proxied.Site{Host: "three.test", Port: 443,
			Logins: []proxied.Login{{Secret: "me", Path: "/oauth/token"}}})
	}, answer)
}

const tokenURL = "https://three.test/oauth/token"

// post asks the token endpoint.
func (l *lab) post(kind, body string) (int, string) {
	l.t.Helper()
	status, _, text := l.do(l.client(false), "POST", tokenURL, map[string]string{"Content-Type": kind},
		strings.NewReader(body))
	return status, text
}

const form = "application/x-www-form-urlencoded"

// Tokens that are issued are not let in. Their placeholders stand for them where they belong: the first at the host
// that takes it, the second in the body of a request to the token endpoint.
func TestLogin(t *testing.T) {
	n := 0
	l := newLogin(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/oauth/token" {
			return
		}
		n++
		w.Header().Set("X-Refresh", fmt.Sprintf("REAL+refresh/%d", n))
		_, _ = fmt.Fprintf(w, `{"access_token":"REAL-access-%d","refresh_token":"REAL+refresh/%d","expires_in":3600,`+
			`"note":"REAL-access-%d, REAL+refresh/%d and REAL%%2Brefresh%%2F%d <&>"}`, n, n, n, max(n-1, 1), n)
	})
	var got struct {
		Access  string `json:"access_token"`
		Refresh string `json:"refresh_token"`
		Expires int    `json:"expires_in"`
		Note    string
	}
	sign := func(kind, body string) {
		t.Helper()
		status, text := l.post(kind, body)
		if status != 200 || strings.Contains(text, "REAL") || json.Unmarshal([]byte(text), &got) != nil {
			t.Fatalf("%d %s", status, text)
		}
	}
	api := func(want string) {
		t.Helper()
		l.do(l.client(false), "GET", "https://one.test/x", map[string]string{"Authorization": "Bearer " + got.Access}, nil)
		list := l.servers["one.test"].requests()
		if v := list[len(list)-1].Header.Get("Authorization"); v != want {
			t.Errorf("%s, want %s", v, want)
		}
	}
	sign(form, "grant_type=authorization_code&code=abc")
	first := got
	if got.Expires != 3600 || !strings.HasPrefix(got.Access, "sbx-placeholder-me-access-token-") ||
		!strings.HasSuffix(got.Note, " <&>") {
		t.Errorf("%+v", got)
	}
	api("Bearer REAL-access-1")
	sign(form, "grant_type=refresh_token&refresh_token="+got.Refresh+"&x="+got.Refresh)
	api("Bearer REAL-access-2")
	sign("application/json; charset=utf-8",
		`{"n":1234567890123456789,"refresh_token":"`+got.Refresh+`","x":"`+got.Refresh+`"}`)
	if got.Access != first.Access || got.Refresh != first.Refresh {
		t.Error("a placeholder changed with its token")
	}
	asked := l.servers["three.test"].body
	if want := "grant_type=refresh_token&refresh_token=REAL%2Brefresh%2F1&x=" + got.Refresh; asked[1] != want {
		t.Errorf("%s\nwant %s", asked[1], want)
	}
	if want := `{"n":1234567890123456789,"refresh_token":"REAL+refresh/2","x":"` + got.Refresh + `"}`; asked[2] != want {
		t.Errorf("%s\nwant %s", asked[2], want)
	}
	l.used("the placeholder in another parameter", func(u proxied.Use) bool { return u.Strayed && u.Host == "three.test" })
	l.used("what was issued", func(u proxied.Use) bool { return u.Issued && u.Secret == "me" && u.Status == 200 })
	// another host gets the placeholders only
	l.do(l.client(false), "POST", "https://two.test/oauth/token",
		map[string]string{"Authorization": "Bearer " + got.Access, "Content-Type": form},
		strings.NewReader("refresh_token="+got.Refresh))
	two := l.servers["two.test"]
	if v := two.requests()[0].Header.Get("Authorization"); v != "Bearer "+got.Access || two.body[0] != "refresh_token="+
		got.Refresh {
		t.Errorf("%s %s", v, two.body[0])
	}
	l.used("it", func(u proxied.Use) bool { return u.Strayed && u.Host == "two.test" })
	// it is kept as it is now
	l.mu.Lock()
	defer l.mu.Unlock()
	r, err := age.Decrypt(bytes.NewReader(l.kept), l.key)
	if err != nil {
		t.Fatal(err)
	}
	var kept []token
	if json.NewDecoder(r).Decode(&kept) != nil || len(kept) != 2 || kept[0] != (token{"access_token", got.Access,
		"REAL-access-3"}) || kept[1] != (token{"refresh_token", got.Refresh, "REAL+refresh/3"}) {
		t.Errorf("%+v", kept)
	}
	again := &login{Secret: proxied.Secret{Name: "me", Fields: []string{"refresh_token", "access_token", "new"}}}
	again.begin(kept)
	if again.tokens[0] != kept[1] || again.tokens[1] != kept[0] || again.tokens[2].Value != "" {
		t.Errorf("the next session has %+v", again.tokens)
	}
}

// What of a token endpoint's answer cannot be read is not let in, and says why.
func TestTokenAnswers(t *testing.T) {
	const one = `{"access_token":"REALTOKEN"}`
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, _ = io.WriteString(z, one)
	z.Close()
	for name, x := range map[string]struct {
		head map[string]string
		code int
		body string
		want int
		says string
	}{
		"a token": {nil, 200, one, 200, `{"access_token":"sbx-placeholder-me-access-token-`},
		"gzip": {map[string]string{"Content-Encoding": "gzip"}, 200, zipped.String(),
			200, "sbx-placeholder-"},
		"another compression": {map[string]string{"Content-Encoding": "br"}, 200, one,
			502, `it is compressed as "br"`},
		"gzip that is none": {map[string]string{"Content-Encoding": "gzip"}, 200, one,
			502, "cannot be read to its end"},
		"chunks": {map[string]string{"X-Chunked": "1"}, 200, one, 200, "sbx-placeholder-"},
		"an early end": {map[string]string{"Content-Length": "100"}, 200, one,
			502, "cannot be read to its end"},
		"not JSON": {nil, 200, "access_token=REALTOKEN&scope=x", 502, "it is no JSON object"},
		"a form": {map[string]string{"Content-Type": form}, 200, "access_token=REALTOKEN&scope=x+y&x=1&x=2",
			200, "&scope=x+y&x=1&x=2"},
		"a form, twice": {map[string]string{"Content-Type": form + "; charset=utf-8"}, 200,
			"access_token=REALTOKEN&access_token=REALTOKEN", 502, "its access_token is no text"},
		"JSON as a form": {map[string]string{"Content-Type": form}, 200, one, 502, "it is no form of plain names"},
		"half a form":    {map[string]string{"Content-Type": form}, 200, "access_token=REALTOKEN;x=%", 502, "it is no form"},
		"a form as JSON": {map[string]string{"Content-Type": "application/json"}, 200, "access_token=REALTOKEN",
			502, "it is no JSON object"},
		"a page":         {nil, 500, "<html>REALTOKEN", 502, "it is no JSON object"},
		"a list":         {nil, 200, "[" + one + "]", 502, "it is no JSON object"},
		"null":           {nil, 200, "null", 502, "it is no JSON object"},
		"more behind it": {nil, 200, one + one, 502, "no JSON object alone"},
		"too long":       {nil, 200, `{"x":"` + strings.Repeat("x", maxLogin) + `"}`, 502, "it is longer than"},
		"nested": {nil, 200, `{"a":[{"b":` + one + `}]}`,
			200, `{"a":[{"b":{"access_token":"sbx-placeholder-`},
		"twice in one object": {nil, 200, `{"access_token":"REALTOKEN1","access_token":"REALTOKEN"}`,
			200, "sbx-placeholder-"},
		"twice, the same": {nil, 200, `{"a":` + one + `,"access_token":"REALTOKEN"}`, 200, "sbx-placeholder-"},
		"twice, different": {nil, 200, `{"a":` + one + `,"access_token":"REALTOKEN1"}`,
			502, "more than one access_token"},
		"in two spellings, different": {nil, 200, `{"Access_Token":"REALTOKEN1","access_token":"REALTOKEN"}`,
			502, "more than one"},
		"an escaped name": {nil, 200, `{"access\u005ftoken":"REALTOKEN"}`,
			200, `"access_token":"sbx-placeholder-`},
		"a number":      {nil, 200, `{"access_token":123456789}`, 502, "its access_token is no text"},
		"an object":     {nil, 200, `{"access_token":{"x":"REALTOKEN"}}`, 502, "its access_token is no text"},
		"a line feed":   {nil, 200, `{"access_token":"REALTOKEN\n"}`, 502, "control character"},
		"a placeholder": {nil, 200, `{"access_token":"sbx-placeholder-x"}`, 502, "is a placeholder"},
		"a redirect": {map[string]string{"Location": "https://x/#REALTOKEN"}, 302, "",
			502, "it leads elsewhere"},
		"an error": {nil, 400, `{"error":"invalid_grant"}`, 400, `{"error":"invalid_grant"}`},
		"none": {nil, 200, `{"access_token":null,"refresh_token":""}`,
			200, `{"access_token":null,"refresh_token":""}`},
		"nothing": {nil, 204, "", 204, ""},
	} {
		l := newLogin(t, func(w http.ResponseWriter, r *http.Request) {
			for k, v := range x.head {
				w.Header().Set(k, v)
			}
			w.Header().Set("Trailer", "X-Behind")
			if w.WriteHeader(x.code); x.head["X-Chunked"] != "" {
				w.(http.Flusher).Flush()
			}
			_, _ = io.WriteString(w, x.body)
			w.Header().Set("X-Behind", "REALTOKEN")
		})
		// the client takes any compression, and would read it itself
		status, head, text := l.do(l.client(false), "POST", tokenURL, map[string]string{"Content-Type": form,
			"Accept-Encoding": "br, gzip", "Range": "bytes=0-3"}, strings.NewReader("code=x"))
		if status != x.want || !strings.Contains(text, x.says) {
			t.Errorf("%s: %d %s, want %d %s", name, status, text, x.want, x.says)
		}
		if strings.Contains(text+fmt.Sprint(head), "REALTOKEN") {
			t.Errorf("%s: the token came in: %s %s", name, head, text)
		}
		if status == 502 {
			l.used(name, func(u proxied.Use) bool { return strings.Contains(u.Failed, x.says) && u.Host == "three.test" })
		}
		h := l.servers["three.test"].requests()[0].Header
		if h.Get("Range") != "" || h.Get("Accept-Encoding") != "gzip" {
			t.Errorf("%s: asked with %v", name, h)
		}
	}
}

// A token endpoint is known however its path is written, or the path is refused. The requests that rules allow are
// others.
func TestTokenPaths(t *testing.T) {
	l := newLogin(t, func(w http.ResponseWriter, r *http.Request) {
		text := `{"access_token":"REALTOKEN"}`
		if r.URL.Path == "/other" {
			text = `{"access_token":"ANOTHERONE"}`
		}
		w.Header().Set("Content-Length", strconv.Itoa(len(text)))
		_, _ = io.WriteString(w, text)
	})
	for path, want := range map[string]int{"/oauth/token": 200, "/oauth/token?x=y": 200, "/oauth/token/": 200,
		"/OAuth/Token": 200, "/oauth/%74oken": 200, "//oauth/token": 403, "/x/../oauth/token": 403,
		"/oauth%2ftoken": 403, "/oauth/token;x": 403,
		"/oauth/tokens": 403} {
		for _, method := range []string{"POST", "GET", "HEAD"} {
			status, _, text := l.do(l.client(true), method, "https://three.test"+path, nil, nil)
			if status != want || strings.Contains(text, "REALTOKEN") {
				t.Errorf("%s %s: %d %s", method, path, status, text)
			}
		}
	}
	if status, _, text := l.do(l.client(false), "GET", "https://three.test/other", nil, nil); status != 200 ||
		!strings.Contains(text, "ANOTHERONE") { // control: only the token endpoint's answers are read
		t.Errorf("%d %s", status, text)
	}
	if status, text := l.post(form, strings.Repeat("x", maxLogin+1)); status != 413 {
		t.Errorf("%d %s", status, text)
	}
	status, _, text := l.do(l.client(false), "GET", tokenURL, map[string]string{"Connection": "Upgrade",
		"Upgrade": "websocket"}, nil)
	if status != 501 {
		t.Errorf("%d %s", status, text)
	}
}

// A program that reads a JSON Web Token reads the same in its placeholder, which nobody has signed. It follows the last
// token.
func TestJSONWebTokens(t *testing.T) {
	part := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	n := 0
	signed := func() string {
		return part(`{"alg":"RS256","kid":"k"}`) + "." + part(fmt.Sprintf(`{"exp":%d,"account":{"id":"acct-1"},`+
			`"was":"REAL-refresh"}`, n)) + ".REALSIGNATURE" + strconv.Itoa(n)
	}
	l := newLogin(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/oauth/token" {
			n++
			_, _ = fmt.Fprintf(w, `{"access_token":%q,"refresh_token":"REAL-refresh"}`, signed())
		}
	})
	for range 2 {
		var got map[string]string
		if _, text := l.post(form, "code=x"); strings.Contains(text, "REAL") || json.Unmarshal([]byte(text), &got) != nil {
			t.Fatal(text)
		}
		parts := strings.Split(got["access_token"], ".")
		if len(parts) != 3 || !strings.HasPrefix(parts[2], "sbx-placeholder-me-access-token-") {
			t.Fatal(got)
		}
		claims, err := base64.RawURLEncoding.DecodeString(parts[1])
		want := fmt.Sprintf(`{"account":{"id":"acct-1"},"exp":%d,"was":%q}`, n, got["refresh_token"])
		if _, bad := base64.RawURLEncoding.DecodeString(parts[2]); err != nil || bad != nil || string(claims) != want {
			t.Errorf("%s (%v, %v), want %s", claims, err, bad, want)
		}
		l.do(l.client(false), "GET", "https://one.test/x", map[string]string{"Authorization": "Bearer " +
			got["access_token"]}, nil)
		list := l.servers["one.test"].requests()
		if v := list[len(list)-1].Header.Get("Authorization"); v != "Bearer "+signed() {
			t.Errorf("%s, want %s", v, signed())
		}
	}
	// control: what only looks like one is a token that says nothing
	for _, value := range []string{"a.b.c", part(`{"alg":1}`) + ".x.y", part(`{}`) + "." + part(`{}`) + ".y", "opaque"} {
		if p := likeIt("x.y.sbx-placeholder-1", value, func(v any) any { return v }); p != "sbx-placeholder-1" {
			t.Errorf("%s: %s", value, p)
		}
	}
}

// Whatever a form is, no token of it comes in, and what was read is read the same again.
func FuzzForm(f *testing.F) {
	for _, s := range []string{"access_token=a-token&x=1", "x=1&x=2", "%61ccess_token=b-token", "a;b=c", `{"access_token":"x"}`,
		"access_token=a-token&access_token=b-token"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, body string) {
		object, err := readForm([]byte(body))
		if err != nil {
			return
		}
		l := &login{Secret: proxied.Secret{Name: "me", Fields: []string{"access_token"}}}
		if l.begin(nil); l.find(object, map[int]string{}) != nil {
			return
		}
		out := writtenForm(l.swap(object, l.cover()))
		for name, list := range must(url.ParseQuery(string(out))) {
			if l.field(name) == 0 && list[0] != "" && list[0] != l.tokens[0].Placeholder {
				t.Errorf("%q became %q", body, out)
			}
		}
	})
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
