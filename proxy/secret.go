//go:build linux

package main

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io"
	"net/url"
	"os"
	"strings"

	"sbx.example/sbx/proxy/sigv4"
	"sbx.example/sbx/shared/proxied"
)

// maxSecret bounds a value.
const maxSecret = 16 << 10

// secret is one with its value.
type secret struct {
	proxied.Secret
	value string
	aws   *sigv4.Key // nil: the value stands in requests by itself
}

// texts are what is sent of a secret, as it is spelled in requests. An access key's own secret is sent to nobody.
func (s *secret) texts() []string {
	if s.aws != nil {
		return []string{s.aws.ID, s.aws.Token, url.QueryEscape(s.aws.Token)}
	}
	if len(s.value) < leastCovered {
		return nil
	}
	// The last of these is how many libraries write JSON.
	return append(inBase64(s.value),
		s.value, url.QueryEscape(s.value), url.PathEscape(s.value), strings.ReplaceAll(s.value, "/", `\/`))
}

// inBase64 is what stands of a text in base64, as of a password behind its user: up to two bytes of another group may
// be before it. What a character at its ends has in common with its neighbours is left out.
func inBase64(text string) (list []string) {
	for before := range 3 {
		all := base64.RawStdEncoding.EncodeToString([]byte("::"[:before] + text))
		list = append(list, all[(before*8+5)/6:(before+len(text))*8/6])
	}
	return list
}

// readSecret takes a value from its descriptor. A line feed at its end is the tool's that wrote it.
func readSecret(f *os.File, s proxied.Secret) (secret, error) {
	out := secret{Secret: s}
	var from io.Reader = f
	if s.Sealed {
		var err error
		if from, err = opened(f, s.Keys); err != nil {
			return out, err
		}
	}
	b, err := io.ReadAll(io.LimitReader(from, maxSecret+1))
	if err != nil {
		return out, err
	}
	b = bytes.TrimRight(b, "\r\n")
	if s.Key != "" && len(b) <= maxSecret {
		out.aws, err = readKey(b)
		return out, err
	}
	out.value = string(b)
	return out, checkValue(b)
}

// checkValue says why a value can stand in no request.
func checkValue(b []byte) error {
	switch {
	case len(b) > maxSecret:
		return errors.New("its value is too long")
	case len(b) == 0:
		return errors.New("its value is empty")
	case bytes.ContainsFunc(b, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return errors.New("its value holds a line feed or another control character, which no request can carry")
	}
	return nil
}

// in puts the value in the placeholder's place.
func (s *secret) in(text string) string { return strings.ReplaceAll(text, s.Placeholder, s.value) }

// basic is the value of a header with a user and a password.
func basic(user, password string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
}

// unbasic takes one apart.
func unbasic(header string) (user, password string, ok bool) {
	scheme, rest, _ := strings.Cut(header, " ")
	if !strings.EqualFold(scheme, "Basic") {
		return "", "", false
	}
	b, err := base64.StdEncoding.DecodeString(strings.TrimSpace(rest))
	if err != nil {
		return "", "", false
	}
	return strings.Cut(string(b), ":")
}
