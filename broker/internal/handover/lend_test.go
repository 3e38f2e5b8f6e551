//go:build linux

package handover

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// lentPipe is a caller's pipe and what a program reads of it.
func lentPipe(t *testing.T) (caller, writer, program *os.File, l *Loan) {
	t.Helper()
	caller, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	program, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	if l = Feed(caller, to); l == nil {
		t.Fatal("the pipe was not lent")
	}
	t.Cleanup(func() { caller.Close(); writer.Close(); program.Close() })
	return caller, writer, program, l
}

func readAll(t *testing.T, f io.Reader) string {
	t.Helper()
	b, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestLoanTakesWhatWasRead: who reads the pipe next finds what the program has left, wherever it stopped.
func TestLoanTakesWhatWasRead(t *testing.T) {
	for n := range len("one\ntwo\nthree\n") + 1 {
		caller, writer, program, l := lentPipe(t)
		for _, s := range []string{"one\n", "two\n", "three\n"} {
			if _, err := writer.WriteString(s); err != nil {
				t.Fatal(err)
			}
		}
		read := make([]byte, n)
		if _, err := io.ReadFull(program, read); err != nil {
			t.Fatal(err)
		}
		program.Close()
		l.End()
		writer.Close()
		if got := string(read) + readAll(t, caller); got != "one\ntwo\nthree\n" {
			t.Errorf("after %d bytes: %q", n, got)
		}
	}
}

func TestLoanIsExact(t *testing.T) {
	_, writer, program, l := lentPipe(t)
	text := bytes.Repeat([]byte("0123456789abcdef\n"), 100_000)
	go func() {
		_, _ = writer.Write(text)
		writer.Close()
	}()
	if got := readAll(t, program); got != string(text) {
		t.Errorf("%d bytes came of %d, or others", len(got), len(text))
	}
	l.End()
}

// TestLoanIsNoWayBack: what the program writes into its pipe comes to nobody outside. The caller's own pipe, given
// directly, is the control.
func TestLoanIsNoWayBack(t *testing.T) {
	inject := func(f *os.File) {
		w, err := os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", f.Fd()), os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		if _, err := w.WriteString("injected"); err != nil {
			t.Fatal(err)
		}
	}
	caller, writer, program, l := lentPipe(t)
	inject(program)
	l.End()
	if n, err := unix.IoctlGetInt(int(caller.Fd()), unix.TIOCINQ); err != nil || n != 0 {
		t.Errorf("%d bytes are in the caller's pipe: %v", n, err)
	}
	inject(caller)
	writer.Close()
	if got := readAll(t, caller); got != "injected" {
		t.Errorf("the control shows %q", got)
	}
}

func TestLoanEndsWithItsReader(t *testing.T) {
	_, _, program, l := lentPipe(t)
	program.Close()
	<-l.done
	l.End()
}

// resize has the program's pipe hold that much, which the kernel allows it.
func resize(t *testing.T, program *os.File, size int) {
	t.Helper()
	if _, err := unix.FcntlInt(program.Fd(), unix.F_SETPIPE_SZ, size); err != nil && !errors.Is(err, unix.EBUSY) {
		t.Fatal(err)
	}
}

// most is more than any of these tests writes.
const most = 1 << 20

// drain reads a pipe to its end by read(2), or by splice(2) into another one.
func drain(program *os.File, spliced bool) (string, error) {
	if !spliced {
		b, err := io.ReadAll(io.LimitReader(program, most))
		return string(b), err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return "", err
	}
	done := make(chan struct{})
	defer func() {
		r.Close()
		<-done // a pipe's end is nothing that the memory model knows
	}()
	go func() {
		defer close(done)
		defer w.Close()
		for {
			n, err := unix.Splice(int(program.Fd()), nil, int(w.Fd()), nil, 3, 0)
			if n <= 0 && !errors.Is(err, unix.EINTR) {
				return
			}
		}
	}()
	b, err := io.ReadAll(io.LimitReader(r, most))
	return string(b), err
}

// TestLoanShowsNothingTwice: a program that makes its pipe larger, so that there is always room, reads each byte once.
// The control leaves the pipe as it is.
func TestLoanShowsNothingTwice(t *testing.T) {
	for _, c := range []struct {
		name    string
		grows   int // how often
		readers int
		spliced bool
	}{{"control", 0, 1, false}, {"once", 1, 1, false}, {"in a loop", 1000, 1, false}, {"two readers", 1000, 2, false},
		{"splice", 1000, 1, true}} {
		caller, writer, program, l := lentPipe(t)
		grown, got := make(chan struct{}, c.grows), make(chan string, c.readers)
		go func() {
			defer close(grown)
			for i := range c.grows {
				resize(t, program, (1+i%2)<<19)
				grown <- struct{}{}
				time.Sleep(200 * time.Microsecond)
			}
		}()
		grows := func(times int) { // waits until it has grown that often, or grows no more
			for range times {
				<-grown
			}
		}
		want := ""
		write := func(s string) {
			want += s
			if _, err := writer.WriteString(s); err != nil {
				t.Fatal(err)
			}
		}
		grows(20)
		write("hello\n")
		write("again\n")
		grows(250) // nobody reads
		for range c.readers {
			go func() {
				s, err := drain(program, c.spliced)
				if err != nil {
					t.Error(err)
				}
				got <- s
			}()
		}
		for i := range 20 {
			write(strings.Repeat(string(rune('a'+i)), 700))
			grows(25)
		}
		writer.Close()
		all := ""
		for range c.readers {
			all += <-got
		}
		if c.readers == 1 && all != want || len(all) != len(want) {
			t.Errorf("%s: %d bytes came of %d, or others", c.name, len(all), len(want))
		}
		grows(c.grows)
		l.End()
		if rest := readAll(t, caller); rest != "" {
			t.Errorf("%s: %d bytes are left for the next reader", c.name, len(rest))
		}
	}
}

// TestLoanTakesWhatALargerPipeGave: what is not read stays for the next reader, and nothing is busy until then.
func TestLoanTakesWhatALargerPipeGave(t *testing.T) {
	caller, writer, program, l := lentPipe(t)
	resize(t, program, 1<<20)
	if _, err := writer.WriteString("one\ntwo\n"); err != nil {
		t.Fatal(err)
	}
	read := make([]byte, 4)
	if _, err := io.ReadFull(program, read); err != nil {
		t.Fatal(err)
	}
	var before, after unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &before)
	for range 100 {
		resize(t, program, 1<<20)
		time.Sleep(5 * time.Millisecond)
	}
	_ = unix.Getrusage(unix.RUSAGE_SELF, &after)
	if used := after.Utime.Nano() + after.Stime.Nano() - before.Utime.Nano() - before.Stime.Nano(); used > 2e8 {
		t.Errorf("half a second of waiting took %v of the processor", time.Duration(used))
	}
	l.End()
	program.Close()
	writer.Close()
	if got := string(read) + readAll(t, caller); got != "one\ntwo\n" {
		t.Errorf("%q came", got)
	}
}
