//go:build linux

package main

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/godbus/dbus/v5"

	"sbx.example/sbx/selftest/need"
)

// bus starts a session bus of the test's own and returns its address.
func bus(t *testing.T) string {
	t.Helper()
	need.Tool(t, "dbus-daemon")
	dir := t.TempDir()
	conf := filepath.Join(dir, "conf")
	if err := os.WriteFile(conf, []byte("<busconfig><type>session</type><listen>unix:path="+dir+"/bus</listen>"+
		"<auth>EXTERNAL</auth><policy context='default'><allow send_destination='*' eavesdrop='true'/>"+
		"<allow eavesdrop='true'/><allow own='*'/></policy></busconfig>"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("dbus-daemon", "--config-file="+conf, "--nofork", "--print-address=1")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	if _, err := out.Read(make([]byte, 1)); err != nil { // it listens
		t.Fatal(err)
	}
	return "unix:path=" + dir + "/bus"
}

// standIn is a keyring: one collection, which may be locked, and then asks.
type standIn struct {
	conn *dbus.Conn

	mu sync.Mutex
	standing
}

// standing is how it is now.
type standing struct {
	locked   bool
	dismiss  bool // how it is answered
	leave    bool // it ends when it is to ask
	prompts  int
	none     bool // there is no collection
	replaced bool
	items    map[dbus.ObjectPath]*standItem
}

func (s *standIn) now() standing {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.standing
	n.items = maps.Clone(n.items)
	return n
}

func (s *standIn) change(do func(*standing)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	do(&s.standing)
}

type standItem struct {
	of         *standIn
	path       dbus.ObjectPath
	attributes map[string]string
	text       []byte
}

const (
	standCollection = dbus.ObjectPath("/org/freedesktop/secrets/collection/login")
	standPrompt     = dbus.ObjectPath("/org/freedesktop/secrets/prompt/p1")
)

// stand puts a keyring on a bus.
func stand(t *testing.T, address string) *standIn {
	t.Helper()
	conn, err := dbus.Connect(address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	s := &standIn{conn: conn, standing: standing{items: map[dbus.ObjectPath]*standItem{}}}
	for _, x := range []struct {
		at   dbus.ObjectPath
		name string
	}{{servicePath, interfaces + "Service"}, {standCollection, interfaces + "Collection"},
		{standCollection, "org.freedesktop.DBus.Properties"}, {standPrompt, interfaces + "Prompt"}} {
		err = errors.Join(err, conn.Export(s, x.at, x.name))
	}
	if reply, e := conn.RequestName(service, 0); err != nil || e != nil || reply != dbus.RequestNameReplyPrimaryOwner {
		t.Fatal(err, e, reply)
	}
	return s
}

func (s *standIn) OpenSession(kind string, _ dbus.Variant) (dbus.Variant, dbus.ObjectPath, *dbus.Error) {
	if kind != "plain" {
		return dbus.MakeVariant(""), none, dbus.MakeFailedError(errors.New("no such kind\x1b[31m"))
	}
	return dbus.MakeVariant(""), "/org/freedesktop/secrets/session/s1", nil
}

func (s *standIn) ReadAlias(string) (dbus.ObjectPath, *dbus.Error) {
	if s.now().none {
		return none, nil
	}
	return standCollection, nil
}

func (s *standIn) Unlock([]dbus.ObjectPath) ([]dbus.ObjectPath, dbus.ObjectPath, *dbus.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.locked {
		return nil, standPrompt, nil
	}
	return []dbus.ObjectPath{standCollection}, none, nil
}

func (s *standIn) Prompt(string) *dbus.Error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.prompts++
	if s.leave {
		_, _ = s.conn.ReleaseName(service)
		return nil
	}
	s.locked = s.dismiss
	_ = s.conn.Emit(standPrompt, interfaces+"Prompt.Completed", s.dismiss, dbus.MakeVariant(""))
	return nil
}

func (s *standIn) Get(string, string) (dbus.Variant, *dbus.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return dbus.MakeVariant(s.locked), nil
}

func (s *standIn) SearchItems(want map[string]string) (out []dbus.ObjectPath, _ *dbus.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for at, i := range s.items {
		if maps.Equal(i.attributes, want) {
			out = append(out, at)
		}
	}
	return out, nil
}

func (s *standIn) CreateItem(props map[string]dbus.Variant, v value, replace bool) (dbus.ObjectPath, dbus.ObjectPath,
	*dbus.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := &standItem{of: s, text: v.Text}
	i.attributes, _ = props[properties+"Attributes"].Value().(map[string]string)
	for at, old := range s.items {
		if replace && maps.Equal(old.attributes, i.attributes) {
			s.replaced = true
			delete(s.items, at)
		}
	}
	i.path = standCollection + dbus.ObjectPath("/i"+strconv.Itoa(len(s.items)))
	s.items[i.path] = i
	_ = s.conn.Export(i, i.path, interfaces+"Item")
	return i.path, none, nil
}

func (i *standItem) GetSecret(session dbus.ObjectPath) (value, *dbus.Error) {
	return value{session, []byte{}, i.text, "text/plain"}, nil
}

func (i *standItem) Delete() (dbus.ObjectPath, *dbus.Error) {
	i.of.mu.Lock()
	defer i.of.mu.Unlock()
	delete(i.of.items, i.path)
	return none, nil
}

// keepsText keeps a text under a name, as if it came by a pipe.
func keepsText(t *testing.T, address, name, text string) error {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	_, _ = io.WriteString(w, text)
	w.Close()
	return inKeyring(address, func(k *keyring) error {
		k.in = r
		return k.keep(name)
	})
}

// fetched is what comes out of the keyring.
func fetched(t *testing.T, address, name string) (string, error) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	err = inKeyring(address, func(k *keyring) error {
		k.out = w
		return k.fetch(name)
	})
	w.Close()
	text, _ := io.ReadAll(r)
	return string(text), err
}

// What is kept in the keyring comes back, is replaced and is forgotten; another name has nothing of it.
func TestKeyring(t *testing.T) {
	address := bus(t)
	s := stand(t, address)
	for _, text := range []string{"VALUE-1\n", "VALUE-2"} {
		if err := keepsText(t, address, "a", text); err != nil {
			t.Fatal(err)
		}
		if got, err := fetched(t, address, "a"); err != nil || got != strings.TrimSpace(text) {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
	if n := s.now(); len(n.items) != 1 || !n.replaced || n.prompts != 0 {
		t.Errorf("%d items, replaced %v, asked %d times", len(n.items), n.replaced, n.prompts)
	}
	got, err := fetched(t, address, "b")
	if err == nil || got != "" || !strings.Contains(err.Error(), "has no value of it") {
		t.Errorf("another name: %q, %v", got, err)
	}
	if err := keepsText(t, address, "a", "two\nlines"); err == nil {
		t.Error("a value that no request can carry was kept")
	}
	if err := inKeyring(address, func(k *keyring) error { return k.forget("a") }); err != nil || len(s.now().items) != 0 {
		t.Errorf("forgotten: %v, %d items", err, len(s.now().items))
	}
}

// A locked keyring asks by itself, once. Where it stays locked, nothing is kept or read, and the error says why.
func TestLockedKeyring(t *testing.T) {
	address := bus(t)
	s := stand(t, address)
	if err := keepsText(t, address, "a", "VALUE"); err != nil {
		t.Fatal(err)
	}
	s.change(func(n *standing) { n.locked = true })
	if got, err := fetched(t, address, "a"); err != nil || got != "VALUE" || s.now().prompts != 1 {
		t.Errorf("unlocked when asked: %q, %v, asked %d times", got, err, s.now().prompts)
	}
	s.change(func(n *standing) { n.locked, n.dismiss = true, true })
	if got, err := fetched(t, address, "a"); !errors.Is(err, errKeyringLocked) || got != "" {
		t.Errorf("dismissed: %q, %v", got, err)
	}
	if err := keepsText(t, address, "b", "VALUE"); !errors.Is(err, errKeyringLocked) || len(s.now().items) != 1 {
		t.Errorf("dismissed: %v, %d items", err, len(s.now().items))
	}
	s.change(func(n *standing) { n.leave = true })
	if _, err := fetched(t, address, "a"); err == nil || !strings.Contains(err.Error(), "ended before it had asked") {
		t.Errorf("it ended: %v", err)
	}
}

// What is no keyring is told from one that does not work: sbx keeps a value elsewhere in the first case alone.
func TestNoKeyring(t *testing.T) {
	address := bus(t)
	present := func(address string) error { return inKeyring(address, (*keyring).present) }
	if err := present(address); !errors.Is(err, errNoKeyring) {
		t.Errorf("a bus without one: %v", err)
	}
	if err := keepsText(t, address, "a", "VALUE"); !errors.Is(err, errNoKeyring) {
		t.Errorf("kept without one: %v", err)
	}
	if err := present("unix:path=" + t.TempDir() + "/none"); err == nil || errors.Is(err, errNoKeyring) {
		t.Errorf("no bus: %v", err)
	}
	s := stand(t, address)
	if err := present(address); err != nil {
		t.Errorf("with one: %v", err)
	}
	s.change(func(n *standing) { n.none = true })
	if err := keepsText(t, address, "a", "VALUE"); err == nil || !strings.Contains(err.Error(), "no default collection") {
		t.Errorf("no collection: %v", err)
	}
	if err := inItsWords(errors.New("a\x1b[31m")); bytes.ContainsRune([]byte(err.Error()), '\x1b') {
		t.Errorf("%q", err)
	}
}
