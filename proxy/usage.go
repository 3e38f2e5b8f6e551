//go:build linux

package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
)

// counted is a body of which the tokens are counted that it says it has cost. It goes on unchanged and at once.
type counted struct {
	io.ReadCloser
	line    []byte // what has come of the last one
	lost    bool   // the line is too long to be looked at
	stream  bool   // it is events, and no object as a whole
	in, out int64
	size    int64
	id      string                       // what it calls itself
	model   string                       // that has made it
	done    func(u *counted, whole bool) // whole: it has come to its end
}

// maxEvent bounds a line, or an object, that is looked at.
const maxEvent = 8 << 20

func (u *counted) Read(b []byte) (int, error) {
	n, err := u.ReadCloser.Read(b)
	u.size += int64(n)
	for rest := b[:n]; len(rest) > 0; {
		i := bytes.IndexByte(rest, '\n')
		part := rest
		if u.stream && i >= 0 {
			part, rest = rest[:i], rest[i+1:]
		} else {
			rest = nil
		}
		if u.lost = u.lost || len(u.line)+len(part) > maxEvent; !u.lost {
			u.line = append(u.line, part...)
		}
		if u.stream && i >= 0 {
			u.look()
		}
	}
	if err != nil {
		u.end(errors.Is(err, io.EOF))
	}
	return n, err
}

func (u *counted) Close() error {
	u.end(false)
	return u.ReadCloser.Close()
}

func (u *counted) end(whole bool) {
	if u.done == nil {
		return
	}
	u.look()
	u.done(u, whole)
	u.done = nil
}

// counts are the fields in which APIs say what an answer has cost; in a stream the last one counts.
type counts struct {
	In       int64 `json:"input_tokens"`
	Written  int64 `json:"cache_creation_input_tokens"`
	Read     int64 `json:"cache_read_input_tokens"`
	Out      int64 `json:"output_tokens"`
	Prompt   int64 `json:"prompt_tokens"`
	Complete int64 `json:"completion_tokens"`
}

// said is an answer, or an event of one, as far as it is about tokens.
type said struct {
	reply
	Message  *reply
	Response *reply
	Gemini   *struct {
		In      int64 `json:"promptTokenCount"`
		Out     int64 `json:"candidatesTokenCount"`
		Thought int64 `json:"thoughtsTokenCount"`
	} `json:"usageMetadata"`
}

// reply is an answer as most APIs write it.
type reply struct {
	ID    word
	Model word
	Usage *counts
}

// word is a text; what is none says nothing.
type word string

// UnmarshalJSON takes what is a text.
func (w *word) UnmarshalJSON(b []byte) error {
	_ = json.Unmarshal(b, (*string)(w))
	return nil
}

// look takes the counts from what has come: from an object, or from each of a list.
func (u *counted) look() {
	line := bytes.TrimSpace(u.line)
	if u.stream {
		var ok bool
		if line, ok = bytes.CutPrefix(line, []byte("data:")); !ok {
			line = nil
		}
	}
	if !u.lost && bytes.Contains(line, []byte("sage")) {
		var list []said
		if line[0] == '[' {
			_ = json.Unmarshal(line, &list)
		} else if s := (said{}); json.Unmarshal(line, &s) == nil {
			list = []said{s}
		}
		for _, s := range list {
			u.take(&s)
		}
	}
	u.line, u.lost = u.line[:0], false
}

// take takes the counts from one object.
func (u *counted) take(s *said) {
	for _, a := range []*reply{&s.reply, s.Message, s.Response} {
		if a == nil {
			continue
		}
		u.id, u.model = cmp.Or(u.id, string(a.ID)), cmp.Or(u.model, string(a.Model))
		if c := a.Usage; c != nil {
			u.in = max(u.in, c.In+c.Written+c.Read, c.Prompt)
			u.out = max(u.out, c.Out, c.Complete)
		}
	}
	if g := s.Gemini; g != nil {
		u.in, u.out = max(u.in, g.In), max(u.out, g.Out+g.Thought)
	}
}
