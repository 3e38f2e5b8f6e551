//go:build linux

package client

import (
	"errors"
	"fmt"
	"io"

	"sbx.example/sbx/broker/internal/files"
)

// What is said of operations on files; docs/protocol.md describes the members.
type (
	// FileRequest is an operation: its Op is read, write, edit, list or find.
	FileRequest = files.Request
	// FileAnswer is what came of one.
	FileAnswer = files.Answer
	// FileError is why one was not carried out.
	FileError = files.Fault
)

// FileChange is the content of an edit: the text that a file has once, and what it is to have instead.
func FileChange(old, text string) []byte { return files.Change(old, text) }

var errAnswer = errors.New("the answer is larger than what was asked for")

// File carries out an operation on a file of the session's, as a program inside would, and returns a *FileError where
// that was refused or failed. content is what is written, or a FileChange. c may have Asked and Told.
func (p Programs) File(q FileRequest, content io.Reader, c Command) (*FileAnswer, error) {
	if err := q.Check(); err != nil {
		return nil, err
	}
	text := &bounded{left: q.MaxAnswer()}
	c.file, c.Stdin, c.Stdout = &q, content, text
	end, err := p.Run(c)
	switch {
	case err != nil:
		return nil, err
	case text.left < 0:
		return nil, errAnswer
	case end.Error != "":
		return nil, errors.New(end.Error)
	case end.Signal != "":
		return nil, fmt.Errorf("sbx's file tool was ended inside the session (SIG%s) before it had answered", end.Signal)
	}
	a, err := files.ReadAnswer(text.b)
	if err != nil {
		return nil, err
	}
	if a.Error != nil {
		return a, a.Error
	}
	return a, nil
}

// bounded keeps what is written to it, up to a bound. Where more comes nothing is kept.
type bounded struct {
	b    []byte
	left int64
}

func (w *bounded) Write(p []byte) (int, error) {
	if w.left -= int64(len(p)); w.left < 0 {
		w.b = nil
		return 0, errAnswer
	}
	w.b = append(w.b, p...)
	return len(p), nil
}
