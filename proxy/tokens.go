//go:build linux

package main

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
	"strings"

	"sbx.example/sbx/shared/proxied"
)

// tokenError says why an answer of a token endpoint does not go on: what cannot be read may hold a token.
type tokenError struct{ why string }

func (e tokenError) Error() string {
	return "the answer of its token endpoint was not let in, as it may hold a token: " + e.why
}

// loginAt is the login whose token endpoint a request is for. Servers disagree on case and on a slash at the end.
func (s *site) loginAt(r *http.Request) *login {
	plain := func(p string) string { return strings.TrimSuffix(p, "/") }
	for _, at := range s.Logins {
		if strings.EqualFold(plain(at.Path), plain(r.URL.Path)) {
			return s.p.login(at.Secret)
		}
	}
	return nil
}

// ask prepares a request to a token endpoint, and says why it is not made. Its answer has to be read: it may be neither
// a part, nor compressed in a way that only the client knows, nor another protocol.
func (x *exchange) ask(s *site, r *http.Request) (status int, why string) {
	if upgrades(r) {
		return http.StatusNotImplemented, "a change of the protocol at a token endpoint"
	}
	body, err := readWhole(r.Body)
	if err != nil {
		return http.StatusRequestEntityTooLarge, "a request to a token endpoint: " + err.Error()
	}
	for _, name := range [...]string{"Range", "If-Range", "Accept-Encoding", "TE"} {
		r.Header.Del(name)
	}
	if r.Header.Get("Content-Encoding") == "" {
		body = x.login.asked(r.Header.Get("Content-Type"), body)
	}
	for _, k := range s.p.known() { // what was not put in is no token that belongs there
		if bytes.Contains(body, []byte(k.Placeholder)) {
			s.p.out.use(proxied.Use{Secret: k.Name, Host: s.Host, Port: s.Port, Method: r.Method, Strayed: true})
		}
	}
	setBody(r, body)
	return 0, ""
}

// tokens lets an answer of a token endpoint in, with placeholders for what it issues.
func (x *exchange) tokens(s *site, r *http.Response) error {
	defer r.Body.Close()
	if r.StatusCode >= 300 && r.StatusCode < 400 && r.Header.Get("Location") != "" {
		return tokenError{"it leads elsewhere"}
	}
	if how := r.Header.Get("Content-Encoding"); how != "" && !strings.EqualFold(how, "identity") {
		return tokenError{"it is compressed as " + strconv.Quote(how)}
	}
	body, err := readWhole(r.Body)
	if err != nil {
		return tokenError{err.Error()}
	}
	issued := false
	if len(bytes.TrimSpace(body)) > 0 {
		if body, issued, err = x.login.issued(r.Header.Get("Content-Type"), body); err != nil {
			return tokenError{err.Error()}
		}
	}
	for _, name := range [...]string{"Etag", "Digest", "Content-Digest", "Content-Md5", "Trailer"} {
		r.Header.Del(name)
	}
	cover := x.login.cover()
	for _, list := range r.Header {
		for i := range list {
			list[i] = cover.Replace(list[i])
		}
	}
	if r.Trailer = nil; r.Request.Method != http.MethodHead {
		r.ContentLength, r.TransferEncoding = int64(len(body)), nil
		r.Header.Set("Content-Length", strconv.Itoa(len(body)))
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	s.p.out.use(proxied.Use{Secret: x.login.Name, Host: s.Host, Port: s.Port, Method: r.Request.Method,
		Status: r.StatusCode, Issued: issued})
	return nil
}
