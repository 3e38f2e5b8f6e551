//go:build linux

package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"sbx.example/sbx/shared/proxied"
	"sbx.example/sbx/shared/turn"
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

// ask prepares a request to a token endpoint and waits for its turn, and says whether the request is to be made: else
// it was answered. Its answer has to be read: it may be neither a part, nor compressed in a way that only the client
// knows, nor another protocol.
func (x *exchange) ask(s *site, w http.ResponseWriter, r *http.Request) bool {
	l := x.login
	if upgrades(r) {
		s.refuse(w, r, http.StatusNotImplemented, "a change of the protocol at a token endpoint")
		return false
	}
	was, _ := l.turn.Mark() // what is issued from now on answers this request too
	select {
	case l.places <- struct{}{}:
		defer func() { <-l.places }()
	default:
		s.fail(w, r, http.StatusServiceUnavailable, "too many requests wait for its token endpoint")
		return false
	}
	body, ok := s.question(w, r, x)
	if !ok {
		return false
	}
	r.Header = wholly(r.Header)
	for _, name := range [...]string{"Range", "If-Range", "Accept-Encoding", "TE"} {
		r.Header.Del(name)
	}
	asked := digest(r, body)
	leave, err := l.await(r.Context())
	if err == nil {
		if err = l.newest(r.Context(), false); l.hasEnded() {
			err = turn.ErrEnded
		}
		if err != nil {
			leave()
		}
	}
	switch {
	case errors.Is(err, turn.ErrEnded):
		s.refuse(w, r, http.StatusForbidden, "credential "+l.Name+" was removed")
		return false
	case err != nil:
		s.fail(w, r, http.StatusServiceUnavailable, err.Error())
		return false
	}
	x.leave = leave
	if r.Header.Get("Content-Encoding") == "" {
		real := l.asked(r.Header.Get("Content-Type"), body)
		if !bytes.Equal(real, body) { // it presents a token, which others do as well
			x.digest = asked
		}
		body = real
	}
	if a, ok := l.known(x.digest, was); ok && x.digest != "" {
		leave()
		s.answer(w, r, l, a)
		return false
	}
	for _, k := range s.p.known() { // what was not put in is no token that belongs there
		if bytes.Contains(body, []byte(k.Placeholder)) {
			s.p.out.use(proxied.Use{Secret: k.Name, Host: s.Host, Port: s.Port, Method: r.Method, Strayed: true})
		}
	}
	setBody(r, body)
	s.sends(x, r, l.Name)
	return true
}

// question reads the body of a request to a token endpoint, and answers one that cannot be read.
func (s *site) question(w http.ResponseWriter, r *http.Request, x *exchange) (body []byte, ok bool) {
	const what = "a request to a token endpoint"
	body, err := s.p.hold(w, r, x, maxLogin)
	x.places.leave() // the login has places of its own
	if err != nil {
		s.unheld(w, r, err, what+": it is longer than "+strconv.Itoa(maxLogin)+" bytes",
			what+" that cannot be read to its end")
	}
	return body, err == nil
}

// digest is the same for requests that ask a token endpoint for the same.
func digest(r *http.Request, body []byte) string {
	h := sha256.New()
	for _, s := range []string{r.Method, r.URL.RequestURI(), r.Header.Get("Content-Type"),
		r.Header.Get("Authorization")} {
		fmt.Fprintf(h, "%q\n", s)
	}
	h.Write(body)
	return hex.EncodeToString(h.Sum(nil))
}

// answer answers as the token endpoint has answered the same request of another program.
func (s *site) answer(w http.ResponseWriter, r *http.Request, l *login, a answer) {
	s.p.out.use(proxied.Use{Secret: l.Name, Host: s.Host, Port: s.Port, Method: r.Method, Status: http.StatusOK,
		Issued: true, Shared: true})
	w.Header().Set("Content-Type", a.Kind)
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Length", strconv.Itoa(len(a.Body)))
	_, _ = w.Write(a.Body)
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
	asked := x.digest
	if r.StatusCode != http.StatusOK {
		asked = ""
	}
	if len(bytes.TrimSpace(body)) > 0 {
		if body, x.issued, err = x.login.issued(r.Header.Get("Content-Type"), asked, body); err != nil {
			return tokenError{err.Error()}
		}
	}
	for _, name := range [...]string{"Etag", "Digest", "Content-Digest", "Content-Md5", "Trailer"} {
		r.Header.Del(name)
	}
	cover := x.login.cover()
	for _, list := range r.Header {
		for i := range list {
			list[i] = replaced(list[i], cover)
		}
	}
	if r.Trailer = nil; r.Request.Method != http.MethodHead {
		r.ContentLength, r.TransferEncoding = int64(len(body)), nil
		r.Header.Set("Content-Length", strconv.Itoa(len(body)))
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return nil
}
