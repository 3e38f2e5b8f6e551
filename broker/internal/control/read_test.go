package control

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sbx/broker/internal/decide"
	"sbx/broker/internal/prompt"
)

// looked is a connection that nobody reads but those who look.
func looked(t *testing.T, b *bench) (*conn, *os.File, *bufio.Reader) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	peer := os.NewFile(uintptr(fds[1]), "peer")
	t.Cleanup(func() { peer.Close() })
	if err := peer.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	c := newConn(b.s, fds[0])
	b.s.mu.Lock()
	b.s.conns[c] = struct{}{}
	b.s.mu.Unlock()
	go c.write()
	t.Cleanup(c.finish)
	in := bufio.NewReader(peer)
	for _, want := range []string{`"hello"`, `"event.fs_request"`} {
		if l, err := in.ReadString('\n'); err != nil || !strings.Contains(l, want) {
			t.Fatalf("got %q, %v; want %s", l, err, want)
		}
	}
	return c, peer, in
}

func (b *bench) only(t *testing.T) prompt.Question {
	t.Helper()
	list := b.q.Pending()
	if len(list) != 1 {
		t.Fatalf("%d questions", len(list))
	}
	return list[0]
}

// Whoever waits takes the answer himself; what its client is told of it comes when he has gone on.
func TestLook(t *testing.T) {
	b := newBench(t, Options{})
	answer := b.ask("/a/f")
	c, peer, in := looked(t, b)
	var after decide.After
	if c.look(&after) {
		t.Error("an answer before there was one")
	}
	line := fmt.Sprintf(`{"type":"cmd.approve","id":%q,"scope":"file"}`, b.only(t).ID)
	fmt.Fprint(peer, line)
	if c.look(&after) {
		t.Error("an answer before its line ended")
	}
	fmt.Fprintln(peer)
	if !c.look(&after) {
		t.Fatal("the answer was not found")
	}
	if a := <-answer; !a.Allow || a.By != prompt.BySocket {
		t.Errorf("answered %+v", a)
	}
	if err := peer.SetReadDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if l, err := in.ReadString('\n'); err == nil {
		t.Errorf("told %q too early", l)
	}
	if err := peer.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	after.Run()
	for _, want := range []string{`"event.audit"`, `"re":"cmd.approve"`} {
		if l, err := in.ReadString('\n'); err != nil || !strings.Contains(l, want) {
			t.Errorf("got %q, %v; want %s", l, err, want)
		}
	}
}

// What was held back is told at the end as well.
func TestLookAtTheEnd(t *testing.T) {
	b := newBench(t, Options{})
	b.ask("/a/f")
	c, peer, in := looked(t, b)
	var after decide.After
	fmt.Fprintf(peer, "{\"type\":\"cmd.deny\",\"id\":%q}\n", b.only(t).ID)
	if !c.look(&after) {
		t.Fatal("the answer was not found")
	}
	c.finish()
	for _, want := range []string{`"event.audit"`, `"re":"cmd.deny"`} {
		if l, err := in.ReadString('\n'); err != nil || !strings.Contains(l, want) {
			t.Errorf("got %q, %v; want %s", l, err, want)
		}
	}
	after.Run()
}

// Lines other than answers are obeyed beside, and the first that is wrong is the last here too.
func TestLookLeavesTheRest(t *testing.T) {
	b := newBench(t, Options{})
	b.ask("/a/f")
	c, peer, in := looked(t, b)
	var after decide.After
	defer after.Run()
	fmt.Fprintln(peer, `{"type":"cmd.stats"}`)
	if c.look(&after) {
		t.Error("took cmd.stats for an answer")
	}
	if l, err := in.ReadString('\n'); err != nil || !strings.Contains(l, `"stats"`) {
		t.Errorf("got %q, %v", l, err)
	}
	c.reading.Lock() // whoever obeyed cmd.stats still has it for a moment, in which nobody else looks
	fmt.Fprintf(peer, "{\"type\":\"cmd.deny\",\"id\":%q}\n{\"type\":\"cmd.deny\",\"id\":%q}\n", b.only(t).ID, id)
	c.reading.Unlock()
	if !c.look(&after) {
		t.Error("the answer was not found")
	}
	if !c.look(&after) { // nobody knows that question
		t.Error("the second answer was not found")
	}
	var got []string
	for {
		l, err := in.ReadString('\n')
		if err != nil {
			break
		}
		got = append(got, l)
	}
	if len(got) != 3 || !strings.Contains(got[0], `"event.audit"`) || !strings.Contains(got[1], `"ok"`) || !strings.Contains(got[2], CodeUnknown) {
		t.Errorf("told %q", got)
	}
	if c.look(&after) {
		t.Error("something was read after the end")
	}
}

// A queue whose program answers at once has its answers looked for; a question that nobody answers waits as ever.
func TestLookFromTheQueue(t *testing.T) {
	b := newBench(t, Options{})
	c := b.dial()
	go func() {
		_ = c.Follow(context.Background(), func(m *Message) error {
			if m.IsRequest() && m.Path != "/a/slow" {
				return c.Send(string(m.ID), prompt.Answer{Allow: true, Scope: prompt.File, Life: prompt.ForSession})
			}
			return nil
		})
	}()
	for b.s.Clients() == 0 {
		time.Sleep(time.Millisecond)
	}
	for i := range 200 {
		var after decide.After
		if a := b.q.Ask(decide.WithAfter(context.Background(), &after), prompt.Question{PID: 7, Op: "read", Path: fmt.Sprintf("/%d/f", i)}); !a.Allow {
			t.Fatalf("question %d: %+v", i, a)
		}
		after.Run()
	}
	parked := make(chan struct{})
	answer := make(chan prompt.Answer)
	go func() {
		var after decide.After
		after.OnPark(func() { close(parked) })
		a := b.q.Ask(decide.WithAfter(context.Background(), &after), prompt.Question{PID: 7, Op: "read", Path: "/a/slow"})
		after.Run()
		answer <- a
	}()
	<-parked
	if err := b.q.Answer(b.only(t).ID, prompt.Answer{By: prompt.BySocket}); err != nil {
		t.Fatal(err)
	}
	if a := <-answer; a.Allow {
		t.Error("a no became a yes")
	}
}

// FuzzSplitObject holds the splitting of lines against the standard library's.
func FuzzSplitObject(f *testing.F) {
	for _, l := range []string{`{}`, ` { "a" : 1 , "b":[{"c":"}"},"]"] } `, `{"a\u0041":"x\\","b":{"\"":[1,2,{"d":null}]},"c":-1.5e3,"d":true}`, `{"a":1,"a":2}`, `{"\u0061":"","a":""}`, `[1]`, `"a"`} {
		f.Add([]byte(l))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		got, err := splitObject(line)
		if err != nil {
			return
		}
		d := json.NewDecoder(bytes.NewReader(line))
		if _, err := d.Token(); err != nil {
			t.Fatal(err)
		}
		for _, m := range got {
			name, err := d.Token()
			var raw json.RawMessage
			if err == nil {
				err = d.Decode(&raw)
			}
			if err != nil || name != m.name || !bytes.Equal(raw, m.raw) {
				t.Fatalf("%q: got %q: %q, want %q: %q, %v", line, m.name, m.raw, name, raw, err)
			}
		}
		if d.More() {
			t.Fatalf("%q: something is missing", line)
		}
	})
}
