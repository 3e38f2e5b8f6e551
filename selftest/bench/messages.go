//go:build linux

package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

// server is a program that answers each line with itself.
type server struct {
	*peer
	in  io.WriteCloser
	out *bufio.Reader
	cmd *exec.Cmd
}

// messages measures round trips to servers that speak over their standard input and output: n each, in turn.
func messages(n, warm int, args []string) error {
	peers, err := peersOf(args)
	if err != nil {
		return err
	}
	var servers []*server
	for _, p := range peers {
		s, err := serve(p)
		if err != nil {
			return err
		}
		defer s.cmd.Wait()
		defer s.in.Close()
		servers = append(servers, s)
	}
	for i := range n + warm {
		line := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"text":"%s"}}`+"\n", i,
			strings.Repeat("x", 128))
		for _, s := range servers {
			begin := time.Now()
			if _, err := io.WriteString(s.in, line); err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
			back, err := s.out.ReadString('\n')
			if d := time.Since(begin); i >= warm {
				s.times = append(s.times, d)
			}
			if err != nil || back != line {
				return fmt.Errorf("%s: message %d came back as %q (%v)", s.name, i, back, err)
			}
		}
	}
	fmt.Printf("%-24s %10s %10s %10s\n", "round trip", "median ms", "p99 ms", "most ms")
	for _, p := range peers {
		quote(p.name, p.times)
	}
	return nil
}

func serve(p *peer) (s *server, err error) {
	s = &server{peer: p, cmd: exec.Command(p.argv[0], p.argv[1:]...)}
	s.cmd.Stderr = os.Stderr
	if s.in, err = s.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	s.out = bufio.NewReader(out)
	return s, s.cmd.Start()
}
