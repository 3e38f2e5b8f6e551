//go:build linux

package main

import (
	"crypto/rand"
	"encoding/base64"
	"strings"
)

// newPlaceholder is one for a field of a login. As the signature of a JSON Web Token it is whole groups of base64url.
func newPlaceholder(login, field string) string {
	p := "sbx-placeholder-" + login + "-" + strings.ReplaceAll(field, "_", "-") + "-" + strings.ToLower(rand.Text())
	return p + strings.Repeat("0", (4-len(p)%4)%4)
}

// likeIt is a placeholder that a program can read as it reads the token. Of a JSON Web Token (RFC 7519) that is what it
// claims, without a signature: who has signed in, and until when. Any other token says nothing to a program.
func likeIt(placeholder, value string, covered func(any) any) string {
	sign := placeholder[strings.LastIndexByte(placeholder, '.')+1:]
	parts := strings.Split(value, ".")
	if len(parts) != 3 {
		return sign
	}
	head, err1 := readPart(parts[0])
	claims, err2 := readPart(parts[1])
	if err1 != nil || err2 != nil || head["alg"] == nil {
		return sign
	}
	encode := base64.RawURLEncoding.EncodeToString
	return encode([]byte(`{"alg":"none","typ":"JWT"}`)) + "." + encode(written(covered(claims))) + "." + sign
}

func readPart(part string) (map[string]any, error) {
	text, err := base64.RawURLEncoding.DecodeString(part)
	if err != nil {
		return nil, err
	}
	return readObject(text)
}
