//go:build linux

package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// answer is what "bench -times" says of one command.
type answer struct {
	Took  time.Duration
	Error string
}

// serveTimes runs each command that it reads, a JSON list of words on a line, and writes an answer.
func serveTimes(in io.Reader, out io.Writer) error {
	lines, answers := json.NewDecoder(in), json.NewEncoder(out)
	for {
		var argv []string
		if err := lines.Decode(&argv); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil || len(argv) == 0 {
			return fmt.Errorf("reading a command: %v", err)
		}
		var a answer
		var err error
		if a.Took, err = timed(argv); err != nil {
			a.Error = err.Error()
		}
		if err := answers.Encode(a); err != nil {
			return fmt.Errorf("answering: %w", err)
		}
	}
}

// remote is a "bench -times" in other surroundings.
type remote struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *json.Decoder
}

func startRemote(argv []string) (*remote, error) {
	if len(argv) == 0 {
		return nil, errors.New("an empty -elsewhere")
	}
	e := &remote{cmd: exec.Command(argv[0], argv[1:]...)}
	e.cmd.Stderr = os.Stderr
	out, err := e.cmd.StdoutPipe()
	if err == nil {
		e.in, err = e.cmd.StdinPipe()
	}
	if err == nil {
		err = e.cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", argv[0], err)
	}
	e.out = json.NewDecoder(bufio.NewReader(out))
	return e, nil
}

func (e *remote) timed(argv []string) (time.Duration, error) {
	var a answer
	err := json.NewEncoder(e.in).Encode(argv)
	if err == nil {
		err = e.out.Decode(&a)
	}
	if err == nil && a.Error != "" {
		err = errors.New(a.Error)
	}
	return a.Took, err
}

func (e *remote) end() {
	e.in.Close()
	_ = e.cmd.Wait()
}
