//go:build linux

package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"
)

// first measures the machine's part of an approval: from a program's first access to a file until the file is open,
// where a program answers over the session socket at once. Each file lies in a directory of its own; scope says what
// each answer grants. It prints the first and the last tenth apart: what was approved before must not slow what comes
// after.
func first(n int, sbx, gate, scope string) error {
	home, err := os.UserHomeDir()
	if err != nil {
		return err
	}
	top, err := os.MkdirTemp(home, "first-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(top)
	for i := range n {
		if err := os.Mkdir(fmt.Sprintf("%s/%06d", top, i), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(fmt.Sprintf("%s/%06d/f", top, i), []byte("x"), 0o644); err != nil {
			return err
		}
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	sid := fmt.Sprintf("first-%d", os.Getpid())
	c := exec.Command(sbx, "run", "-q", "--mode", "dynamic", "--gate", gate, "--prompt", "socket", "--name", sid, "--ro",
		self, "--", self, "-inside", top)
	var out strings.Builder
	c.Stdout, c.Stderr = &out, os.Stderr
	if err := c.Start(); err != nil {
		return err
	}
	answered := make(chan error, 1)
	go func() { answered <- approve(sid, scope) }()
	err = c.Wait()
	if aerr := <-answered; err == nil {
		err = aerr
	}
	if err != nil {
		return err
	}
	var times []time.Duration
	for _, f := range strings.Fields(out.String()) {
		d, err := time.ParseDuration(f)
		if err != nil {
			return err
		}
		times = append(times, d)
	}
	if len(times) != n {
		return fmt.Errorf("%d of %d files were opened", len(times), n)
	}
	fmt.Printf("%-24s %10s %10s %10s\n", "first access, "+gate, "median ms", "p99 ms", "most ms")
	tenth := max(n/10, 1)
	quote("all "+scope, times)
	quote("the first tenth", times[:tenth])
	quote("the last tenth", times[n-tenth:])
	return nil
}

func quote(what string, times []time.Duration) {
	t := slices.Clone(times)
	slices.Sort(t)
	fmt.Printf("%-24s %10.3f %10.3f %10.3f\n", what, ms(t[len(t)/2]), ms(t[len(t)*99/100]), ms(t[len(t)-1]))
}

// inside is the program that is measured. It warms its own pages first.
func inside(top string) error {
	list, err := filepath.Glob("/usr/bin/*")
	if err != nil {
		return err
	}
	runtime.LockOSThread()
	for _, p := range list[:min(len(list), 50)] {
		_, _ = open(p)
	}
	var times []time.Duration
	for i := 0; ; i++ {
		d, err := open(fmt.Sprintf("%s/%06d/f", top, i))
		if errors.Is(err, syscall.ENOENT) {
			break
		}
		if err != nil {
			return fmt.Errorf("file %d: %w", i, err)
		}
		times = append(times, d)
	}
	for _, d := range times {
		fmt.Println(d)
	}
	return nil
}

// approve answers every question of a session with yes until it ends (docs/protocol.md). It is as plain as a program in
// C: one thread that reads and writes.
func approve(sid, scope string) error {
	runtime.LockOSThread()
	debug.SetGCPercent(-1) // a collection would wait for the thread that reads
	runtime.GOMAXPROCS(4)
	root := os.Getenv("XDG_RUNTIME_DIR")
	if root != "" {
		root += "/sbx"
	} else if root = os.Getenv("XDG_STATE_HOME"); root != "" {
		root += "/sbx/run"
	} else {
		root = os.Getenv("HOME") + "/.local/state/sbx/run"
	}
	c, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer syscall.Close(c)
	for range 1000 {
		if err = syscall.Connect(c, &syscall.SockaddrUnix{Name: root + "/" + sid + "/sock"}); err == nil {
			break
		}
		time.Sleep(2 * time.Millisecond)
	}
	if err != nil {
		return err
	}
	in := bufio.NewScanner(plain(c))
	in.Buffer(make([]byte, 64<<10), 64<<10)
	for in.Scan() {
		var m struct{ Type, ID, Message string }
		if err := json.Unmarshal(in.Bytes(), &m); err != nil {
			return err
		}
		switch m.Type {
		case "error":
			return errors.New(m.Message)
		case "event.fs_request":
			if _, err := fmt.Fprintf(plain(c), "{\"type\":\"cmd.approve\",\"id\":%q,\"scope\":%q}\n", m.ID, scope); err != nil {
				return err
			}
		}
	}
	return nil
}
