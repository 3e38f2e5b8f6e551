//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"sbx.example/sbx/proxy/sigv4"
	"sbx.example/sbx/shared/proxied"
)

// readKey takes an access key from its value: "ID:SECRET" or "ID:SECRET:TOKEN", or what a credential_process prints.
func readKey(b []byte) (*sigv4.Key, error) {
	var k sigv4.Key
	if text := bytes.TrimSpace(b); bytes.HasPrefix(text, []byte("{")) {
		var said struct{ AccessKeyId, SecretAccessKey, SessionToken string }
		if json.Unmarshal(text, &said) != nil {
			return nil, errors.New("its value begins as JSON and is none")
		}
		k = sigv4.Key{ID: said.AccessKeyId, Secret: said.SecretAccessKey, Token: said.SessionToken}
	} else if parts := strings.Split(string(text), ":"); len(parts) == 2 || len(parts) == 3 {
		k = sigv4.Key{ID: parts[0], Secret: parts[1], Token: strings.Join(parts[2:], "")}
	}
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	printable := func(s string) bool {
		return !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' })
	}
	if k.ID == "" || k.Secret == "" || strings.Trim(k.ID, letters+"-_.") != "" || !printable(k.Secret+k.Token) {
		return nil, errors.New("its value is no access key: ID:SECRET, ID:SECRET:TOKEN, or JSON with AccessKeyId and " +
			"SecretAccessKey")
	}
	return &k, nil
}

// signed verifies what a program inside has signed with placeholders, so that it can be signed anew, and says whether
// the request goes on. It has answered one that does not. What is not verified goes on as it is: its server refuses it,
// as it would without sbx.
func (s *site) signed(w http.ResponseWriter, r *http.Request, x *exchange) bool {
	c, ok := sigv4.Read(r)
	if !ok {
		return true
	}
	for _, at := range s.Places {
		if k := s.p.secret(at.Secret); at.AWS && k.Placeholder == c.ID {
			x.signer, x.unsigned = k, ungranted(k.Scopes, c)
		}
	}
	if x.signer == nil || x.unsigned != "" {
		return true
	}
	payload := c.Payload(r)
	if payload != "" && !sigv4.Known(payload) {
		s.p.refuse(w, proxied.Use{Host: s.Host, Port: s.Port, Method: r.Method, Status: http.StatusNotImplemented,
			Refused: "a body that is signed as " + strconv.Quote(payload) + ", which cannot be signed anew"})
		return false
	}
	if payload == "" && c.Presigned() { // most services leave the body of such a request out
		x.verified, _ = c.Verify(r, x.signer.Key, sigv4.Unsigned)
	}
	if x.verified == nil {
		if payload == "" {
			body, ok := s.hold(w, r, x)
			if !ok {
				return false
			}
			payload = sigv4.Hash(body)
		}
		x.verified, _ = c.Verify(r, x.signer.Key, payload)
	}
	if x.verified == nil {
		x.unsigned = "its signature is not right"
	}
	return true
}

// ungranted says why a claim is not for what was granted.
func ungranted(granted []string, c *sigv4.Claim) string {
	if slices.Contains(granted, c.Service) || slices.Contains(granted, c.Service+"/"+c.Region) {
		return ""
	}
	return "it is signed for " + strconv.Quote(c.Service+"/"+c.Region) + ", and granted is " + strings.Join(granted, ", ")
}

// maxHeld bounds bodies whose hash the client has signed and not said.
const maxHeld = 32 << 20

// hold reads such a body, and answers a request where it cannot be held.
func (s *site) hold(w http.ResponseWriter, r *http.Request, x *exchange) (body []byte, ok bool) {
	body, err := s.p.hold(w, r, x, maxHeld)
	if err != nil {
		s.unheld(w, r, err, "a body of more than "+strconv.Itoa(maxHeld)+
			" bytes whose hash is signed and not said in X-Amz-Content-Sha256",
			"a body that is signed and cannot be read to its end")
	}
	return body, err == nil
}

// unheld answers a request whose body could not be held: long is said of one that is too long, torn of one without an
// end.
func (s *site) unheld(w http.ResponseWriter, r *http.Request, err error, long, torn string) {
	switch {
	case errors.Is(err, errMarked), errors.Is(err, context.Canceled):
		s.failed(w, r, err)
	case errors.Is(err, errLong):
		s.refuse(w, r, http.StatusRequestEntityTooLarge, long)
	default:
		s.refuse(w, r, http.StatusBadRequest, torn)
	}
}

// setBody has a request carry a body that was read.
func setBody(r *http.Request, body []byte) {
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	r.TransferEncoding, r.Trailer = nil, nil
	if len(body) == 0 {
		r.Body = http.NoBody
	}
}

// sign signs what leaves anew, and returns the signature.
func (x *exchange) sign(out *http.Request) string {
	out.Header.Set("Accept-Encoding", "identity") // else Go asks for gzip, and unpacks what is stored so
	return x.verified.Sign(out, *x.signer.aws)
}
