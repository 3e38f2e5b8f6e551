//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"

	"filippo.io/age"

	"sbx.example/sbx/shared/proxied"
	"sbx.example/sbx/shared/turn"
)

// login holds the tokens that the token endpoint of one credential has issued (RFC 6749, 5.1). Programs inside have
// placeholders of them. Those last as long as the login, not the session: a program keeps them in files of its own.
// What sessions share of it is in shared.go.
type login struct {
	proxied.Secret
	out *reports
	to  age.Recipient
	shared

	mu     sync.Mutex
	tokens []token   // in the order of the fields; the first is the one that requests carry
	last   answer    // that has issued them
	mark   turn.Mark // of what is kept: the tokens are as new at least
	ended  bool      // the login was removed
}

// token is one field of an answer. Without a value it was never issued, and nobody knows its placeholder.
type token struct{ Field, Placeholder, Value string }

// answer is one of the token endpoint's as it was let in.
type answer struct {
	Asked string // the digest of the request; "": it is for that one alone
	Kind  string // of the body
	Body  []byte
}

// maxLogin bounds what is kept of a login, and the bodies of requests to a token endpoint and of its answers.
const maxLogin = 1 << 20

// maxAnswer bounds an answer that is kept.
const maxAnswer = 64 << 10

// readLogin takes what was kept of a login, which may be nothing, and to whom it is sealed.
func readLogin(f *os.File, s proxied.Secret, out *reports, over <-chan struct{}) (*login, error) {
	l := &login{Secret: s, out: out, mark: s.Mark}
	public, err := os.ReadFile(store{s.Keys}.at(proxied.PublicKey))
	if err != nil {
		return nil, err
	}
	if l.to, err = age.ParseX25519Recipient(string(bytes.TrimSpace(public))); err != nil {
		return nil, err
	}
	if l.shared, err = newShared(f, over); err != nil || len(s.Kept) == 0 {
		l.begin(nil)
		return l, err
	}
	text, err := opened(bytes.NewReader(s.Kept), s.Keys)
	if err == nil {
		err = l.take(text)
	}
	return l, err
}

// take takes over what was sealed.
func (l *login) take(text io.Reader) error {
	var kept []token
	from := json.NewDecoder(io.LimitReader(text, maxLogin))
	if from.Decode(&kept) != nil {
		return errors.New("what is sealed is no login: sbx secret rm " + l.Name + ", and add it again")
	}
	var last answer
	_ = from.Decode(&last) // there may be none
	var by string
	if from.Decode(&by) == nil && by != l.Login { // the settings name another token endpoint since
		kept, last = nil, answer{}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.begin(kept)
	l.last = last
	return nil
}

// begin has the tokens be those that are kept, and makes placeholders for the fields of which none ever was.
func (l *login) begin(kept []token) {
	var list []token
	for i, name := range l.Fields {
		t := token{Field: name}
		if i < len(l.tokens) {
			t.Placeholder = l.tokens[i].Placeholder
		} else {
			t.Placeholder = newPlaceholder(l.Name, name)
		}
		for _, k := range kept {
			if k.Field == name {
				t = k
			}
		}
		list = append(list, t)
	}
	l.tokens = list
}

// secrets are the tokens as they are now.
func (l *login) secrets() (out []*secret) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, t := range l.tokens {
		s := &secret{Secret: l.Secret, value: t.Value}
		s.Placeholder = t.Placeholder
		out = append(out, s)
	}
	return out
}

// field is the number of the one that a key names; -1 for none. Readers disagree on whether letters' case counts.
func (l *login) field(key string) int {
	for i, name := range l.Fields {
		if strings.EqualFold(name, key) {
			return i
		}
	}
	return -1
}

// asked puts tokens into the body of a request to the token endpoint: each only where the parameter, or the member of
// an object, has its own name and nothing but the placeholder.
func (l *login) asked(kind string, body []byte) []byte {
	tokens := l.secrets()
	real := func(key, text string) (string, bool) {
		i := l.field(key)
		if i < 0 || text != tokens[i].Placeholder || tokens[i].value == "" {
			return "", false
		}
		return tokens[i].value, true
	}
	switch {
	case isForm(kind):
		parts := strings.Split(string(body), "&")
		for i, part := range parts {
			k, v, _ := strings.Cut(part, "=")
			name, err1 := url.QueryUnescape(k)
			text, err2 := url.QueryUnescape(v)
			if value, ok := real(name, text); ok && err1 == nil && err2 == nil {
				parts[i] = k + "=" + url.QueryEscape(value)
			}
		}
		return []byte(strings.Join(parts, "&"))
	case mediaType(kind) == "application/json":
		object, err := readObject(body)
		if err != nil {
			return body
		}
		found := false
		for k, v := range object {
			text, _ := v.(string)
			if value, ok := real(k, text); ok {
				object[k], found = value, true
			}
		}
		if found {
			return written(object)
		}
	}
	return body
}

// issued takes the tokens out of an answer of the token endpoint and keeps them. What it returns has placeholders for
// them, and nothing that was not read as what kind says: a form, or JSON. some says that there were tokens. asked is
// the digest of a request that others may make as well, who get the same answer.
func (l *login) issued(kind, asked string, body []byte) (out []byte, some bool, _ error) {
	read, write := readObject, written
	if isForm(kind) {
		read, write = readForm, writtenForm
	}
	object, err := read(body)
	if err != nil {
		return nil, false, err
	}
	l.telling <- struct{}{} // nobody replaces the tokens meanwhile
	defer func() { <-l.telling }()
	object, some, err = l.replace(object)
	if err != nil {
		return nil, false, err
	}
	if out = write(object); !some {
		return out, false, nil
	}
	var a answer
	if asked != "" && len(out) <= maxAnswer {
		a = answer{asked, kind, out}
	}
	return out, true, l.keep(a)
}

// replace has the tokens of an answer be the login's, and returns the answer with placeholders.
func (l *login) replace(object map[string]any) (out map[string]any, some bool, _ error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	found := map[int]string{}
	if err := l.find(object, found); err != nil {
		return nil, false, err
	}
	old := l.covering(found)
	for i, value := range found {
		l.tokens[i].Placeholder = likeIt(l.tokens[i].Placeholder, value, func(v any) any { return l.swap(v, old) })
	}
	cover := l.covering(found)
	for i, value := range found {
		l.tokens[i].Value = value
	}
	return l.swap(object, cover).(map[string]any), len(found) > 0, nil
}

// find collects the tokens, at whatever depth they are.
func (l *login) find(v any, found map[int]string) error {
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			if err := l.find(x, found); err != nil {
				return err
			}
		}
	case map[string]any:
		for key, x := range v {
			i := l.field(key)
			if i < 0 {
				if err := l.find(x, found); err != nil {
					return err
				}
				continue
			}
			text, ok := x.(string)
			switch before, twice := found[i]; {
			case x == nil || ok && text == "":
				continue
			case !ok:
				return errors.New("its " + l.Fields[i] + " is no text")
			case twice && before != text:
				return errors.New("it has more than one " + l.Fields[i])
			case strings.Contains(text, "sbx-placeholder-"):
				return errors.New("its " + l.Fields[i] + " is a placeholder")
			}
			if err := checkValue([]byte(text)); err != nil {
				return fmt.Errorf("its %s: %w", l.Fields[i], err)
			}
			found[i] = text
		}
	}
	return nil
}

// cover has placeholders for the tokens that there are.
func (l *login) cover() []covered {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.covering(nil)
}

// covering has placeholders for tokens, those from before and those that are new.
func (l *login) covering(found map[int]string) (list []covered) {
	for i, t := range l.tokens {
		for _, value := range []string{t.Value, found[i]} {
			s := &secret{Secret: proxied.Secret{Placeholder: t.Placeholder}, value: value}
			list = covering(list, s, s.texts()...)
		}
	}
	return list
}

// swap has placeholders stand where tokens are.
func (l *login) swap(v any, cover []covered) any {
	switch v := v.(type) {
	case string:
		return replaced(v, cover)
	case []any:
		for i, x := range v {
			v[i] = l.swap(x, cover)
		}
	case map[string]any:
		out := map[string]any{}
		for key, x := range v {
			i := l.field(key)
			if text, ok := x.(string); ok && i >= 0 && text != "" {
				out[key] = l.tokens[i].Placeholder
				continue
			}
			out[replaced(key, cover)] = l.swap(x, cover)
		}
		return out
	}
	return v
}

// readWhole reads a body that has to be looked at as a whole.
func readWhole(from io.Reader) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(from, maxLogin+1))
	switch {
	case err != nil:
		return nil, errors.New("it cannot be read to its end")
	case len(body) > maxLogin:
		return nil, errors.New("it is longer than " + strconv.Itoa(maxLogin) + " bytes")
	}
	return body, nil
}
