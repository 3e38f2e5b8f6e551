//go:build linux

package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"strings"
	"testing"

	"sbx.example/sbx/shared/proxied"
)

// hints asks one.test with the placeholder and returns the hints before the answer, and that.
func (l *lab) hints(h2 bool) (list []string, resp *http.Response) {
	l.t.Helper()
	ctx := httptrace.WithClientTrace(context.Background(), &httptrace.ClientTrace{
		Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
			list = append(list, fmt.Sprint(code, h))
			return nil
		}})
	r, _ := http.NewRequestWithContext(ctx, "GET", "https://one.test/", nil)
	r.Header.Set("Authorization", "Bearer "+ghost)
	resp, err := l.client(h2).Do(r)
	if err != nil {
		l.t.Fatal(err)
	}
	resp.Body.Close()
	return list, resp
}

// A value does not come back in the hints that a server sends before its answer, whose headers nobody looks at.
func TestNothingComesBackInHints(t *testing.T) {
	l := newLab(t, nil, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Link", "<https://three.test/?"+r.Header.Get("Authorization")+">")
		w.WriteHeader(http.StatusEarlyHints)
		w.Header().Set("Link", "<a>")
	})
	for _, h2 := range []bool{false, true} {
		list, resp := l.hints(h2)
		if text := strings.Join(list, " "); text != "103 map[]" { // control: the hint itself is there
			t.Errorf("hints %q", text)
		}
		if resp.Header.Get("Link") != "<a>" {
			t.Errorf("answer %v", resp.Header)
		}
	}
}

// Nor in JSON, in which a slash may have a backslash before it.
func TestNothingComesBackInJSON(t *testing.T) {
	l := newLab(t, nil, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"said": "%s"}`, strings.ReplaceAll(r.Header.Get("Authorization"), "/", `\/`))
	})
	head := map[string]string{"Authorization": "Bearer " + ghost}
	_, _, text := l.do(l.client(true), "GET", "https://one.test/", head, nil)
	if !strings.Contains(text, `"Bearer sbx-hidden-`) || strings.Contains(text, "REAL") ||
		strings.Contains(text, real[5:]) {
		t.Error(text)
	}
}

// Nor in what a websocket carries. A message that ends as the value begins is not kept back.
func TestNothingComesBackInWebsockets(t *testing.T) {
	l := newLab(t, nil, func(w http.ResponseWriter, r *http.Request) {
		c, rw, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		defer c.Close()
		fmt.Fprintf(rw, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		for say := ""; ; say, _ = rw.ReadString('\n') {
			switch strings.TrimSpace(say) {
			case "value":
				say = r.Header.Get("Authorization") + r.Header.Get("Sec-WebSocket-Extensions") + "\n"
			case "begin":
				say = real[:3]
			case "rest":
				say = real[3:] + "\n"
			case "end":
				return
			}
			_, _ = rw.WriteString(say)
			rw.Flush()
		}
	})
	l.servers["one.test"].TLS.NextProtos = nil
	c := l.connect("one.test")
	fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: one.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Extensions: permessage-deflate\r\nAuthorization: Bearer %s\r\n\r\n", ghost)
	in := bufio.NewReader(c)
	resp, err := http.ReadResponse(in, nil)
	if err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
		t.Fatal(resp, err)
	}
	const cover = "sbx-hidden-sbx-hidden-"
	for _, x := range []struct{ say, want string }{
		{"hello", "hello\n"}, // control
		{"value", "Bearer " + cover[:len(real)] + "\n"},
		{"begin", real[:3]},
		{"rest", cover[3:len(real)] + "\n"},
	} {
		got := make([]byte, len(x.want))
		fmt.Fprintln(c, x.say)
		if _, err := io.ReadFull(in, got); err != nil || string(got) != x.want {
			t.Errorf("%s: %q, %v, want %q", x.say, got, err, x.want)
		}
	}
	fmt.Fprintln(c, "end")
}

// Nor in an answer to a later request that has no placeholder, of the same server or of another one.
func TestNothingComesBackLater(t *testing.T) {
	last := ""
	l := newLab(t, nil, func(w http.ResponseWriter, r *http.Request) {
		if v := r.Header.Get("Authorization"); v != "" {
			last = v
		}
		w.Header().Set("X-Last", last+" of all")
		_, _ = io.WriteString(w, last+" of all")
	})
	l.do(l.client(false), "GET", "https://one.test/", map[string]string{"Authorization": "Bearer " + ghost}, nil)
	if last != "Bearer "+real {
		t.Fatalf("the server has %q", last)
	}
	for _, host := range []string{"one.test", "two.test"} {
		for _, enc := range []string{"gzip", "identity"} {
			_, h, body := l.do(l.client(false), "GET", "https://"+host, map[string]string{"Accept-Encoding": enc}, nil)
			if h.Get("X-Last") != "Bearer "+ghost+" of all" || !strings.HasPrefix(body, "Bearer sbx-hidden-") ||
				!strings.HasSuffix(body, " of all") {
				t.Errorf("%s: %v %q", host, h, body)
			}
		}
	}
}

// A program cannot have the beginning of a value covered as the end of a text that it chooses, so that the value is not
// known any more.
func TestNothingComesBackBesideChosenTexts(t *testing.T) {
	l := newLab(t, func(c *proxied.Config) {
		c.Sites[0].Places = append(c.Sites[0].Places, proxied.Place{Secret: "one", Query: "t"})
	}, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Query", r.URL.RawQuery)
		_, _ = io.WriteString(w, r.URL.RawQuery+" and "+r.Header.Get("Authorization"))
	})
	junk := "j=" + strings.Repeat("z", 60) + "&t="
	for _, token := range []string{"", junk + real[:4], basic(junk, "me")[6:], basic("sbx", ghost)[6:]} {
		head := map[string]string{}
		if token != "" {
			head["Authorization"] = "Basic " + token
		}
		_, h, text := l.do(l.client(true), "GET", "https://one.test/?"+junk+ghost, head, nil)
		if want := junk + ghost; h.Get("X-Query") != want {
			t.Errorf("token %q: header %s, want %s", token, h.Get("X-Query"), want)
		}
		hidden := strings.Repeat("sbx-hidden-", 3)[:len(url.QueryEscape(real))]
		want := junk + hidden + " and " + head["Authorization"]
		if text != want { // what has no value in it comes back as it was said
			t.Errorf("token %q: body %s, want %s", token, text, want)
		}
	}
}

// A password comes back neither in its header's spelling nor, in a later answer, behind another user.
func TestNothingComesBackInBase64(t *testing.T) {
	var said []string
	l := newLab(t, func(c *proxied.Config) {
		c.Sites[0].Places[0] = proxied.Place{Secret: "one", Basic: true, User: "me", AnyUser: true}
	}, func(w http.ResponseWriter, r *http.Request) {
		if v := r.Header.Get("Authorization"); v != "" {
			said = append(said, v)
		}
		_, _ = io.WriteString(w, strings.Join(said, "\n"))
	})
	users := []string{"", "a", "ab", "abc"}
	for i, user := range users {
		head := map[string]string{"Authorization": basic(user, ghost)}
		_, _, text := l.do(l.client(true), "GET", "https://one.test/", head, nil)
		if said[i] != basic(user, real) { // control
			t.Fatalf("the server has %q", said[i])
		}
		if list := strings.Split(text, "\n"); strings.Trim(list[i][6:], "-bdehinsx") != "" {
			t.Errorf("%q comes back", list[i])
		}
	}
	_, _, text := l.do(l.client(true), "GET", "https://one.test/", nil, nil)
	for i, line := range strings.Split(text, "\n") {
		value := said[i][6+(len(users[i])+1)*4/3:]
		for n := 2; n < len(value)-8; n++ {
			if strings.Contains(line, value[n:n+4]) {
				t.Errorf("%q of %q comes back later", value[n:n+4], line)
			}
		}
	}
}

// Of a value that has another one in it nothing is left over.
func TestLongerValuesAreCoveredFirst(t *testing.T) {
	l := newLab(t, nil, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.URL.RawQuery) })
	l.p.secrets[1].value = "AA" + real + "-TAIL"
	_, _, body := l.do(l.client(false), "GET", "https://one.test/?AA"+real+"-TAIL", nil, nil)
	if strings.Contains(body, "TAIL") || strings.Contains(body, "AA") || len(body) != len(real)+7 {
		t.Errorf("%q", body)
	}
}
