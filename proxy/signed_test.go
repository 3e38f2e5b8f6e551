//go:build linux

package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"sbx.example/sbx/proxy/sigv4"
	"sbx.example/sbx/shared/proxied"
)

// The access key outside, and what stands for it inside.
var realKey = sigv4.Key{ID: "AKIAREALREALREALREAL", Secret: "REALSECRET/real+0123456789",
	Token: "REALTOKEN/real+0123456789="}

const (
	ghostID  = "AKIASBXGHOSTGHOSTGHO"
	ghostKey = "sbxPlaceholderabcdefghijklmnop"
)

// awsLab has an access key for one.test, and keeps what of it the servers outside saw.
func awsLab(t *testing.T, answer http.HandlerFunc) *lab {
	return newLab(t, func(c *proxied.Config) {
		c.Secrets = []proxied.Secret{{Name: "aws", Placeholder: ghostID, Key: ghostKey,
			Scopes: []string{"s3/eu-west-1", "sts"}}}
		c.Sites[0].Places = []proxied.Place{{Secret: "aws", AWS: true}}
	}, answer)
}

func sum(text string) string {
	h := sha256.Sum256([]byte(text))
	return hex.EncodeToString(h[:])
}

// client signs as a program inside does: it knows the placeholders.
type client struct{ id, secret, scope string } // "20130524/eu-west-1/s3/aws4_request"

func inside(region, service string) client {
	return client{ghostID, ghostKey, "20130524/" + region + "/" + service + "/aws4_request"}
}

const when = "20130524T000000Z"

func (c client) mac(text string) string {
	key := "AWS4" + c.secret
	for _, s := range append(strings.Split(c.scope, "/"), text) {
		h := hmac.New(sha256.New, []byte(key))
		h.Write([]byte(s))
		key = string(h.Sum(nil))
	}
	return hex.EncodeToString([]byte(key))
}

// sign adds a header to a request without parameters. payload is what stands for its body; said has it say so.
func (c client) sign(r *http.Request, payload string, said bool) (signature string) {
	r.Header.Set("X-Amz-Date", when)
	head, names := "host:"+r.URL.Host+"\n", "host"
	if said {
		r.Header.Set("X-Amz-Content-Sha256", payload)
		head, names = head+"x-amz-content-sha256:"+payload+"\n", names+";x-amz-content-sha256"
	}
	head, names = head+"x-amz-date:"+when+"\n", names+";x-amz-date"
	text := r.Method + "\n" + r.URL.Path + "\n\n" + head + "\n" + names + "\n" + payload
	signature = c.mac("AWS4-HMAC-SHA256\n" + when + "\n" + c.scope + "\n" + sum(text))
	r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential="+c.id+"/"+c.scope+", SignedHeaders="+names+
		", Signature="+signature)
	return signature
}

// chunks is a body that is signed in chunks.
func (c client) chunks(last string, chunks ...string) string {
	var body strings.Builder
	for _, data := range append(chunks, "") {
		last = c.mac("AWS4-HMAC-SHA256-PAYLOAD\n" + when + "\n" + c.scope + "\n" + last + "\n" + sum("") + "\n" + sum(data))
		fmt.Fprintf(&body, "%x;chunk-signature=%s\r\n%s\r\n", len(data), last, data)
	}
	return body.String()
}

// address is a presigned one without other parameters.
func (c client) address(host, path, payload string) string {
	query := "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=" + c.id + "%2F" +
		strings.ReplaceAll(c.scope, "/", "%2F") + "&X-Amz-Date=" + when + "&X-Amz-Expires=60&X-Amz-SignedHeaders=host"
	text := "GET\n" + path + "\n" + query + "\nhost:" + host + "\n\nhost\n" + payload
	return "https://" + host + path + "?" + query + "&X-Amz-Signature=" +
		c.mac("AWS4-HMAC-SHA256\n"+when+"\n"+c.scope+"\n"+sum(text))
}

// right says whether the real key has signed what a server was asked.
func right(r *http.Request, body string) string {
	c, ok := sigv4.Read(r)
	if !ok {
		return "it has no claim"
	}
	payload := c.Payload(r)
	if payload == "" {
		payload = sum(body)
	}
	_, ok = c.Verify(r, realKey.Secret, payload)
	if !ok && c.Presigned() {
		_, ok = c.Verify(r, realKey.Secret, sigv4.Unsigned)
	}
	token := r.Header.Get("X-Amz-Security-Token") + r.URL.Query().Get("X-Amz-Security-Token")
	if c.ID != realKey.ID || !ok || token != realKey.Token {
		return fmt.Sprintf("it is signed by %s, verified %v, token %q", c.ID, ok, token)
	}
	return ""
}

func (l *lab) send(h2 bool, r *http.Request) (int, string) {
	l.t.Helper()
	resp, err := l.client(h2).Do(r)
	if err != nil {
		l.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, fmt.Sprint(resp.Header) + string(b)
}

func newRequest(t *testing.T, method, url, body string) *http.Request {
	t.Helper()
	r, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// What a program inside signs with the placeholders arrives signed with the real key, and its body as it was.
func TestSignsAnew(t *testing.T) {
	s3 := inside("eu-west-1", "s3")
	put := func(payload string, said bool) func(*testing.T) *http.Request {
		return func(t *testing.T) *http.Request {
			r, c := newRequest(t, "PUT", "https://one.test/plain", "body"), s3
			if !said {
				c = inside("us-east-2", "sts")
			}
			c.sign(r, payload, said)
			return r
		}
	}
	for name, x := range map[string]struct {
		make func(t *testing.T) *http.Request
		body string
	}{
		"a hash": {put(sum("body"), true), "body"}, "unsigned": {put(sigv4.Unsigned, true), "body"},
		"a hash that is not said": {put(sum("body"), false), "body"},
		"a presigned address": {func(t *testing.T) *http.Request {
			return newRequest(t, "GET", s3.address("one.test", "/x", sigv4.Unsigned), "")
		}, ""},
		"a presigned address with the body's hash": {func(t *testing.T) *http.Request {
			return newRequest(t, "GET", inside("x", "sts").address("one.test", "/", sum("")), "")
		}, ""},
		"unsigned with a trailer": {func(t *testing.T) *http.Request {
			r := newRequest(t, "PUT", "https://one.test/x", "4\r\nbody\r\n0\r\nx-amz-checksum-crc32:x\r\n\r\n")
			s3.sign(r, "STREAMING-UNSIGNED-PAYLOAD-TRAILER", true)
			return r
		}, "4\r\nbody\r\n0\r\nx-amz-checksum-crc32:x\r\n\r\n"},
	} {
		for _, h2 := range []bool{false, true} {
			l := awsLab(t, nil)
			if status, text := l.send(h2, x.make(t)); status != 200 {
				t.Errorf("%s: status %d %s", name, status, text)
			}
			got := l.servers["one.test"]
			if why := right(got.requests()[0], got.body[0]); why != "" || got.body[0] != x.body {
				t.Errorf("%s, h2 %v: %s, body %q", name, h2, why, got.body[0])
			}
			u := l.used(name, func(u proxied.Use) bool { return u.Secret == "aws" && !u.Sent })
			if u.Strayed || u.Status != 200 || u.Host != "one.test" {
				t.Errorf("%s: %+v", name, u)
			}
		}
	}
}

// A chunk arrives before the next one is sent: nothing is held but one.
func TestChunksPassAsTheyCome(t *testing.T) {
	const size = 32 << 10
	arrived := make(chan bool)
	l, c := awsLab(t, nil), inside("eu-west-1", "s3")
	l.servers["one.test"].Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for range 100 {
			if _, err := io.CopyN(io.Discard, r.Body, size); err != nil {
				t.Error(err)
			}
			arrived <- true
		}
		_, _ = io.Copy(io.Discard, r.Body)
	})
	r := newRequest(t, "PUT", "https://one.test/x", "")
	body := c.chunks(c.sign(r, "STREAMING-AWS4-HMAC-SHA256-PAYLOAD", true),
		slices.Repeat([]string{strings.Repeat("x", size)}, 101)...)
	from, to := io.Pipe()
	r.Body, r.ContentLength = from, int64(len(body))
	go func() {
		for i := range 100 {
			n := (i + 1) * (size + 128) // the chunk, and not all of the next one
			_, _ = io.WriteString(to, body[i*(size+128):n])
			<-arrived
		}
		_, _ = io.WriteString(to, body[100*(size+128):])
		to.Close()
	}()
	if status, text := l.send(true, r); status != 200 {
		t.Errorf("status %d %s", status, text)
	}
}

// Each chunk is signed anew.
func TestSignsChunksAnew(t *testing.T) {
	chunks := slices.Repeat([]string{strings.Repeat("x", 1<<20)}, 4)
	for _, h2 := range []bool{false, true} {
		l, c := awsLab(t, nil), inside("eu-west-1", "s3")
		r := newRequest(t, "PUT", "https://one.test/x", "")
		body := c.chunks(c.sign(r, "STREAMING-AWS4-HMAC-SHA256-PAYLOAD", true), chunks...)
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
		if status, text := l.send(h2, r); status != 200 {
			t.Errorf("status %d %s", status, text)
		}
		o := l.servers["one.test"]
		got := o.requests()[0]
		if why := right(got, ""); why != "" {
			t.Error(why)
		}
		claim, _ := sigv4.Read(got)
		real := client{realKey.ID, realKey.Secret, c.scope}
		if o.body[0] != real.chunks(claim.Signature, chunks...) || got.ContentLength != int64(len(body)) {
			t.Errorf("h2 %v: the chunks are not signed with the real key", h2)
		}
	}
}

// What is signed for something else, or not rightly, leaves as it is, and is reported with the reason. So is what is
// signed rightly and sent to another host.
func TestDoesNotSignAnew(t *testing.T) {
	for name, x := range map[string]struct {
		host, why string
		by        client
		change    func(r *http.Request)
	}{
		"another region":  {"one.test", `it is signed for "s3/us-west-2"`, inside("us-west-2", "s3"), nil},
		"another service": {"one.test", `it is signed for "iam/eu-west-1"`, inside("eu-west-1", "iam"), nil},
		"another host":    {"two.test", "", inside("eu-west-1", "s3"), nil},
		"another key": {"one.test", "its signature is not right", client{ghostID, "guessed",
			"20130524/eu-west-1/s3/aws4_request"}, nil},
		"a changed header": {"one.test", "its signature is not right", inside("eu-west-1", "s3"),
			func(r *http.Request) { r.Header.Set("X-Amz-Content-Sha256", sum("other")) }},
		"a changed path": {"one.test", "its signature is not right", inside("eu-west-1", "s3"),
			func(r *http.Request) { r.URL.Path = "/y" }},
		"the secret, elsewhere": {"one.test", "", client{"x", ghostKey, "20130524/eu-west-1/s3/aws4_request"},
			func(r *http.Request) { r.Header.Set("X-Other", ghostKey) }},
	} {
		l := awsLab(t, nil)
		r := newRequest(t, "PUT", "https://"+x.host+"/x", "body")
		x.by.sign(r, sum("body"), true)
		if x.change != nil {
			x.change(r)
		}
		want := r.Header.Get("Authorization")
		l.send(true, r)
		got := l.servers[x.host].requests()[0]
		if got.Header.Get("Authorization") != want || got.Header.Get("X-Amz-Security-Token") != "" ||
			strings.Contains(fmt.Sprint(got.Header), "REAL") {
			t.Errorf("%s: %v", name, got.Header)
		}
		u := l.used(name, func(u proxied.Use) bool { return u.Secret == "aws" && u.Strayed })
		if !strings.HasPrefix(u.Unsigned, x.why) || x.why == "" && u.Unsigned != "" {
			t.Errorf("%s: %+v", name, u)
		}
	}
}

// What cannot be signed anew is refused with the reason, and the server gets nothing of it, or not all of it.
func TestCannotBeSignedAnew(t *testing.T) {
	c := inside("eu-west-1", "s3")
	for name, x := range map[string]struct {
		status  int
		why     string
		payload string
		said    bool
		body    func(seed string) io.Reader
	}{
		"events": {501, "which cannot be signed anew", "STREAMING-AWS4-HMAC-SHA256-EVENTS", true, nil},
		"a wrong chunk": {403, "the signature of one is not its own", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD", true,
			func(seed string) io.Reader {
				return strings.NewReader(strings.Replace(c.chunks(seed, "good", "evil"), "evil", "devl", 1))
			}},
		"a large chunk": {403, "more than 1048576 bytes", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD", true,
			func(seed string) io.Reader { return strings.NewReader(c.chunks(seed, strings.Repeat("x", 1<<20+1))) }},
		"a large body": {413, "whose hash is signed and not said", sum("x"), false,
			func(string) io.Reader { return io.LimitReader(zeros{}, maxHeld+1) }},
	} {
		for _, h2 := range []bool{false, true} {
			l := awsLab(t, nil)
			r := newRequest(t, "PUT", "https://one.test/x", "")
			seed := c.sign(r, x.payload, x.said)
			if x.body != nil {
				r.Body, r.ContentLength = io.NopCloser(x.body(seed)), -1
			}
			status, text := l.send(h2, r)
			if status != x.status || !strings.Contains(text, x.why) {
				t.Errorf("%s, h2 %v: %d %s", name, h2, status, text)
			}
			l.used(name, func(u proxied.Use) bool { return u.Status == x.status && strings.Contains(u.Refused, x.why) })
			o := l.servers["one.test"]
			o.mu.Lock()
			all := slices.Clone(o.body)
			o.mu.Unlock()
			for _, body := range all {
				if strings.Contains(body, "devl") || x.body == nil {
					t.Errorf("%s: %q arrived", name, body)
				}
			}
			if n := len(l.p.bodies.small) + len(l.p.bodies.large); n != 0 {
				t.Errorf("%s: %d places are taken", name, n)
			}
		}
	}
}

// What a server sends back of a key, a token or a signature is covered.
func TestNothingOfAKeyComesBack(t *testing.T) {
	l := awsLab(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Echo", r.Header.Get("Authorization"))
		w.Header().Set("Location", "/?"+r.URL.RawQuery)
		_, _ = io.WriteString(w, r.Header.Get("Authorization")+r.Header.Get("X-Amz-Security-Token")+r.URL.RawQuery)
	})
	s3 := inside("eu-west-1", "s3")
	first := newRequest(t, "GET", "https://one.test/x", "")
	s3.sign(first, sum(""), true)
	for i, r := range []*http.Request{first, newRequest(t, "GET", s3.address("one.test", "/x", sigv4.Unsigned), "")} {
		status, text := l.send(false, r)
		claim, _ := sigv4.Read(l.servers["one.test"].requests()[i])
		if status != 200 || strings.Contains(text, "REAL") || strings.Contains(text, claim.Signature) ||
			strings.Contains(text, "%2Freal%2B") || !strings.Contains(text, "sbx-hidden-") || !strings.Contains(text, ghostID) {
			t.Errorf("%d %s", status, text)
		}
	}
}

// What is stored packed arrives packed, and what is not is asked for unpacked: else nothing of it could be covered.
func TestPackedObjects(t *testing.T) {
	const packed = "not unpacked by anybody"
	l := awsLab(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		w.Header().Set("X-Asked", r.Header.Get("Accept-Encoding"))
		_, _ = io.WriteString(w, packed)
	})
	c := l.client(false)
	c.Transport.(*http.Transport).DisableCompression = true // nor asked for
	for _, asks := range []string{"", "gzip"} {
		r := newRequest(t, "GET", "https://one.test/x", "")
		inside("eu-west-1", "s3").sign(r, sum(""), true)
		if asks != "" {
			r.Header.Set("Accept-Encoding", asks)
		}
		resp, err := c.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || string(b) != packed || resp.Header.Get("Content-Encoding") != "gzip" ||
			resp.Header.Get("X-Asked") != "identity" {
			t.Errorf("asked for %q: %q %v %v", asks, b, resp.Header, err)
		}
	}
}

// A value that is an access key is read in three ways, and nothing else is.
func TestKeys(t *testing.T) {
	for text, want := range map[string]sigv4.Key{
		"AKIA:secret":          {ID: "AKIA", Secret: "secret"},
		"ASIA:sec/+ret=:tok+=": {ID: "ASIA", Secret: "sec/+ret=", Token: "tok+="},
		"{\n  \"Version\": 1,\n  \"AccessKeyId\": \"A\",\n  \"SecretAccessKey\": \"b:c\",\n  \"SessionToken\": \"d\",\n" +
			"  \"Expiration\": \"x\"\n}": {ID: "A", Secret: "b:c", Token: "d"},
		"{\"AccessKeyId\": \"A\", \"SecretAccessKey\": \"b\"}": {ID: "A", Secret: "b"},
	} {
		if k, err := readKey([]byte(text)); err != nil || *k != want {
			t.Errorf("%s: %+v %v", text, k, err)
		}
	}
	for _, text := range []string{"", "AKIA", "AKIA:", ":secret", "A:b:c:d", "A:b c", "A/B:c", "A,B:c", "A:b\nC:d", "{}",
		"{\"AccessKeyId\": \"A\"}", "{", "{\"AccessKeyId\": \"A\", \"SecretAccessKey\": \"b\\r\\nX: y\"}"} {
		if k, err := readKey([]byte(text)); err == nil {
			t.Errorf("%q is %+v", text, k)
		}
	}
}
