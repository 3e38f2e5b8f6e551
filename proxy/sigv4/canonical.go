package sigv4

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// form is one of the ways to write a path into what is signed. S3 takes it as it is; all others take the dots and empty
// segments out and encode once more what is sent. Which one a client has used is known once its signature is verified.
type form struct{ cleaned, twice bool }

var forms = [...]form{{false, false}, {true, true}, {false, true}, {true, false}}

// path is that of a request in this form.
func (f form) path(u *url.URL) string {
	p := u.EscapedPath()
	if p == "" {
		p = "/"
	}
	if f.cleaned {
		p = clean(p)
	}
	parts := strings.Split(p, "/")
	for i, s := range parts {
		if plain, err := url.PathUnescape(s); err == nil && !f.twice {
			s = plain
		}
		parts[i] = encode(s)
	}
	return strings.Join(parts, "/")
}

// clean takes out empty segments and dots (RFC 3986, 6.2.2.3). A slash at the end stays.
func clean(p string) string {
	var out []string
	parts := strings.Split(p, "/")
	for _, s := range parts {
		switch s {
		case "", ".":
		case "..":
			out = out[:max(0, len(out)-1)]
		default:
			out = append(out, s)
		}
	}
	if last := parts[len(parts)-1]; len(out) > 0 && (last == "" || last == "." || last == "..") {
		out = append(out, "")
	}
	return "/" + strings.Join(out, "/")
}

// encode leaves the unreserved characters alone (RFC 3986, 2.3).
func encode(s string) string {
	return strings.NewReplacer("+", "%20", "%7E", "~").Replace(url.QueryEscape(s))
}

// canonicalQuery is the parameters in order, without the signature.
func canonicalQuery(list []pair) string {
	var out []string
	for _, p := range list {
		if p.name != querySignature {
			out = append(out, encode(p.name)+"="+encode(p.value))
		}
	}
	// By name and then by value: "=" would come behind characters that stand in names.
	slices.SortFunc(out, func(a, b string) int {
		return strings.Compare(strings.Replace(a, "=", "\x00", 1), strings.Replace(b, "=", "\x00", 1))
	})
	return strings.Join(out, "&")
}

// canonical is what of a request is signed.
func canonical(r *http.Request, f form, signed []string, payload string) string {
	var b strings.Builder
	b.WriteString(r.Method + "\n" + f.path(r.URL) + "\n" + canonicalQuery(pairs(r.URL.RawQuery)) + "\n")
	for _, name := range signed {
		list, _ := said(r, name)
		for i, v := range list {
			list[i] = strings.Join(strings.FieldsFunc(v, func(c rune) bool { return c == ' ' || c == '\t' }), " ")
		}
		b.WriteString(name + ":" + strings.Join(list, ",") + "\n")
	}
	b.WriteString("\n" + strings.Join(signed, ";") + "\n" + payload)
	return b.String()
}

// said are the values of a header as they are sent; net/http keeps two of them elsewhere.
func said(r *http.Request, name string) (list []string, ok bool) {
	switch name {
	case "host":
		return []string{r.Host}, true
	case "content-length":
		return []string{strconv.FormatInt(r.ContentLength, 10)}, r.ContentLength > 0 || r.ContentLength == 0 &&
			(r.Method == http.MethodPost || r.Method == http.MethodPut || r.Method == http.MethodPatch)
	}
	list = slices.Clone(r.Header[http.CanonicalHeaderKey(name)])
	return list, len(list) > 0
}

// signer makes the signatures of one key in one scope.
type signer struct {
	key         []byte
	time, scope string
}

func (c *Claim) signer(secret string) signer {
	key := []byte("AWS4" + secret)
	for _, s := range []string{c.Date, c.Region, c.Service, ending} {
		key = mac(key, s)
	}
	return signer{key, c.Time, c.scope()}
}

// request signs a request.
func (s signer) request(canonical string) string { return s.sign(algorithm, Hash([]byte(canonical))) }

func (s signer) sign(what string, lines ...string) string {
	return hex.EncodeToString(mac(s.key, what+"\n"+s.time+"\n"+s.scope+"\n"+strings.Join(lines, "\n")))
}

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

// Hash is how a body stands in what is signed.
func Hash(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func same(a, b string) bool { return hmac.Equal([]byte(a), []byte(b)) }
