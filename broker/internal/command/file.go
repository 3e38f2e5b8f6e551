//go:build linux

package command

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/client"
	"sbx.example/sbx/broker/internal/attend"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/launch"
	"sbx.example/sbx/broker/internal/option"
	"sbx.example/sbx/broker/plan"
)

// File is sbx file.
func (t *Term) File() Row {
	path := option.Word{From: option.Nothing}
	verb := func(name, args, help, text string, words ...option.Word) Row {
		return Row{
			Command: option.Command{Name: "file " + name, Args: args, Help: help, Text: text,
				Words: append([]option.Word{{From: option.Session}}, words...)},
			Begin: func([]string) ([]option.Option, func([]string) int) {
				q := &fileRequest{FileRequest: client.FileRequest{Op: name}}
				return q.options(), func(words []string) int { return t.file(q, words) }
			},
		}
	}
	return Row{
		Command: option.Command{Name: "file", Args: "VERB SID ...",
			Help: "read and change files as a running session sees them",
			Text: "Reads and changes files in the running session SID, as a program inside would and without starting one\n" +
				"there: what is hidden is absent, what needs a question waits for the answer, what is guarded is refused."},
		Verbs: []Row{
			verb("read", "[OPTIONS] SID PATH", "print a file", "Prints a file, 1 MiB at a time.", path),
			verb("write", "[OPTIONS] SID PATH", "write a file",
				"Writes standard input to a file, which it replaces in one step.", path),
			verb("edit", "[OPTIONS] SID PATH", "replace a text in a file",
				"Replaces a text that the file has exactly once. Without --old and --new standard input is a JSON object\n"+
					"with both.", path),
			verb("list", "[OPTIONS] SID [PATH]", "list a directory", "Lists the names in a directory.", path),
			verb("find", "[OPTIONS] SID PATTERN [DIR]", "find names below a directory",
				"Finds names below a directory by a pattern such as '*.go'. No link is followed.", option.Word{}, path),
		},
	}
}

// fileRequest is what the command line of an operation asks for.
type fileRequest struct {
	client.FileRequest
	old, text    string
	given, isNew bool // --old, --new
	json         bool
}

// options are those of one operation.
func (q *fileRequest) options() []option.Option {
	number := func(p *int64) option.Value {
		return option.Func(func(v string) (err error) {
			if *p, err = strconv.ParseInt(v, 10, 60); err != nil || *p < 0 {
				err = fmt.Errorf("%s is not a number", quote(v))
			}
			return err
		})
	}
	text := func(p *string, given *bool) option.Value {
		return option.Func(func(v string) error { *p, *given = v, true; return nil })
	}
	limit, most := "N", "names at most (default 1000, at most 10000)"
	if q.Op == "read" {
		most = "bytes at most (default 1048576, at most 16777216)"
	}
	rows := map[string]option.Option{
		"offset": {Name: "offset", Arg: "N", Help: "begin at this byte", Value: number(&q.Offset)},
		"limit":  {Name: "limit", Arg: limit, Help: most, Value: number(&q.Limit)},
		"depth": {Name: "depth", Arg: "N", Help: "directories below each other at most (default 32, at most 64)",
			Value: option.Count(&q.Depth)},
		"parents": {Name: "parents", Help: "make the directories that are missing on the way",
			Value: option.Switch(&q.Parents)},
		"in-place": {Name: "in-place", Help: "write into the file itself, where it cannot be replaced: not in one step",
			Value: option.Switch(&q.InPlace)},
		"old": {Name: "old", Arg: "TEXT", Help: "the text that the file has once", Value: text(&q.old, &q.given)},
		"new": {Name: "new", Arg: "TEXT", Help: "what it is to have instead", Value: text(&q.text, &q.isNew)},
		"root": {Name: "root", Arg: "DIR", Value: option.Func(q.setRoot).Of(option.Nothing),
			Help: "no link leads out of DIR (default: the session's directory for what lies below it, else /)"},
		"json": JSON(&q.json),
	}
	var out []option.Option
	for name := range strings.FieldsSeq(map[string]string{"read": "offset limit", "write": "parents in-place",
		"edit": "old new in-place", "list": "limit", "find": "limit depth"}[q.Op] + " root json") {
		out = append(out, rows[name])
	}
	return out
}

func (q *fileRequest) setRoot(v string) error {
	if !strings.HasPrefix(v, "/") {
		return fmt.Errorf("%s is not an absolute path", quote(v))
	}
	q.Root = plan.Bytes(v)
	return nil
}

// file carries out one operation.
func (t *Term) file(q *fileRequest, words []string) int {
	least, most := 2, 2
	switch q.Op {
	case "list":
		least = 1
	case "find":
		most = 3
	}
	if len(words) < least || len(words) > most {
		return t.Fail(option.Wrong("sbx file "+q.Op+" wants a session and what to "+q.Op, "see sbx file "+q.Op+" --help"))
	}
	sid, rest := words[0], words[1:]
	if err := plan.ValidSession(sid); err != nil {
		return t.Fail(err)
	}
	if q.Op == "find" {
		q.Pattern, rest = plan.Bytes(rest[0]), rest[1:]
	}
	if len(rest) > 0 {
		q.Path = plan.Bytes(rest[0])
	}
	if q.given != q.isNew {
		return t.Fail(option.Wrong("--old and --new belong together", "without both standard input has them"))
	}
	if err := q.Check(); err != nil {
		return t.Fail(option.Wrong(err.Error(), "see sbx file "+q.Op+" --help"))
	}
	var content io.Reader
	switch {
	case q.given:
		content = bytes.NewReader(client.FileChange(q.old, q.text))
	case (q.Op == "write" || q.Op == "edit") && t.Std[0] != nil:
		content = t.Std[0]
	}
	a, err := t.carryOut(q, sid, content)
	var refused *client.FileError
	if err != nil && !(errors.As(err, &refused) && q.json) {
		status := t.execFailed(err)
		if refused != nil {
			status = 1
		}
		return status
	}
	return t.showFile(q, sid, a)
}

// carryOut asks the session, and whoever sits here what the session asks because of it.
func (t *Term) carryOut(q *fileRequest, sid string, content io.Reader) (*client.FileAnswer, error) {
	asker := attend.New(attend.Caller{Sessions: t.sessions(), SID: sid, Home: host.Lookup(t.Env, "HOME"), Note: t.Note,
		Warn: t.Warn, Says: launch.IsTerminal(t.Std[2])})
	defer asker.Close()
	c, err := connect(t, sid, t.sessions().Programs)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	asker.Begins()
	asker.At([3]*os.File{t.Std[0]}) // what is read is shown at the end
	go endBySignal(asker)
	return c.File(q.FileRequest, content, client.Command{Started: asker.Started, Asked: asker.Asked, Told: asker.Told})
}

// endBySignal gives the terminal back before a signal ends this process, and with it the operation.
func endBySignal(asker *attend.Asker) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT)
	x := <-c
	asker.Close()
	launch.EndBy(x.(syscall.Signal))
}

// showFile shows what came of an operation.
func (t *Term) showFile(q *fileRequest, sid string, a *client.FileAnswer) int {
	if q.json {
		t.Print(Encode(struct {
			SID string `json:"sid"`
			*client.FileAnswer
		}{sid, a}))
		if a.Error != nil {
			return 1
		}
		return 0
	}
	if q.Op == "read" {
		if _, err := t.Std[1].Write(a.Content()); err != nil {
			return t.Fail(err)
		}
	}
	for _, e := range a.Entries {
		end := "\n"
		if e.Type == "directory" {
			end = "/\n"
		}
		t.Print(e.Name.Quote() + end)
	}
	if a.Skipped > 0 {
		t.Warn(fmt.Sprintf("%d directories were not searched: too deep, or refused", a.Skipped))
	}
	switch {
	case a.More && q.Op == "read":
		t.Warn(fmt.Sprintf("there is more: --offset %d goes on", a.Offset+a.Bytes))
	case a.More:
		t.Warn("there is more: --limit N shows more names")
	}
	return 0
}
