//go:build linux

package tools

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// serving serves calls at a socket with carryOut, and returns a connection to it.
func serving(t *testing.T, carryOut func(context.Context, Call, *streams) End) net.Conn {
	t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(t.TempDir(), "s"), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go serve(t.Context(), l, nil, carryOut)
	c, err := net.Dial("unix", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	return c
}

func send(t *testing.T, c net.Conn, kind byte, data string) {
	t.Helper()
	if err := writeFrame(c, kind, []byte(data)); err != nil {
		t.Fatal(err)
	}
}

// receive wants a frame of a kind; that input is wanted may come before it.
func receive(t *testing.T, c net.Conn, want byte) string {
	t.Helper()
	kind, data, err := readFrame(c, maxPiece, nil)
	for kind == frameWants && want != frameWants {
		kind, data, err = readFrame(c, maxPiece, nil)
	}
	if err != nil || kind != want {
		t.Fatalf("a frame %c, %q, %v, want %c", kind, data, err, want)
	}
	return string(data)
}

// TestServe: input comes when it is wanted and not sooner, and what is said goes back in order.
func TestServe(t *testing.T) {
	c := serving(t, func(_ context.Context, q Call, x *streams) End {
		b, err := io.ReadAll(x)
		if err != nil || q.Tool != "t" || q.Dir != "/p" || len(q.Args) != 2 || q.Args[1] != "\xff" || q.PID == 0 {
			t.Errorf("%+v, %v", q, err)
		}
		_, err = output{x, frameOutput, 1 << 20, nil}.Write(append(b, strings.Repeat("x", maxPiece)...))
		if err != nil {
			t.Error(err)
		}
		return End{Status: 7}
	})
	send(t, c, frameCall, `{"tool":"t","args":["a","\udcff"],"cwd":"/p"}`)
	for _, piece := range []string{"one", "two", ""} {
		receive(t, c, frameWants)
		send(t, c, frameInput, piece)
	}
	if got := receive(t, c, frameOutput); !strings.HasPrefix(got, "onetwox") || len(got) != maxPiece {
		t.Errorf("%d bytes: %.10s", len(got), got)
	}
	if got := receive(t, c, frameOutput); len(got) != 6 {
		t.Errorf("%d bytes more", len(got))
	}
	var end End
	if err := json.Unmarshal([]byte(receive(t, c, frameEnd)), &end); err != nil || end.Status != 7 {
		t.Errorf("%+v, %v", end, err)
	}
}

// TestServeHears: a caller that goes away, or says what nobody has asked for, ends its call while that waits for
// something else.
func TestServeHears(t *testing.T) {
	many := func(c net.Conn) {
		for range ahead + 1 {
			_ = writeFrame(c, frameInput, nil)
		}
	}
	for name, say := range map[string]func(net.Conn){
		"gone":      func(c net.Conn) { c.Close() },
		"uninvited": many,
		"again":     func(c net.Conn) { _ = writeFrame(c, frameCall, nil) },
		"too long":  func(c net.Conn) { _, _ = c.Write([]byte{frameInput, 0xff, 0, 0, 0}) },
	} {
		ended := make(chan error, 1)
		c := serving(t, func(ctx context.Context, _ Call, _ *streams) End {
			<-ctx.Done()
			ended <- ctx.Err()
			return End{}
		})
		send(t, c, frameCall, `{"tool":"t"}`)
		say(c)
		select {
		case <-ended:
		case <-time.After(time.Minute):
			t.Errorf("%s: the call goes on", name)
		}
	}
}

// TestOutput: what is too much is not passed on, whichever of the two streams it is on.
func TestOutput(t *testing.T) {
	full := false
	c := serving(t, func(_ context.Context, _ Call, x *streams) End {
		out := output{x, frameOutput, 10, func() { full = true }}
		errs := out
		errs.kind = frameErrors
		if _, err := out.Write([]byte("12345")); err != nil || full {
			t.Error(err)
		}
		if _, err := errs.Write([]byte("123456")); !errors.Is(err, errOutput) || !full {
			t.Errorf("%v", err)
		}
		return End{}
	})
	send(t, c, frameCall, `{"tool":"t"}`)
	receive(t, c, frameOutput)
	if got := receive(t, c, frameErrors); got != "12345" {
		t.Errorf("%q was passed on, want what there was room for", got)
	}
	receive(t, c, frameEnd)
}
