//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/containerd/cgroups/v3/cgroup2"
	"github.com/godbus/dbus/v5"

	"sbx.example/sbx/selftest/need"
)

// property and auxiliary are the arguments of StartTransientUnit.
type property struct {
	Name  string
	Value dbus.Variant
}

type auxiliary struct {
	Name       string
	Properties []property
}

// manager is a systemd on a message bus: it notes what it is asked for, and answers as it was told to.
type manager struct {
	conn *dbus.Conn

	mu      sync.Mutex
	result  string // of the job; "" for one that never ends
	refusal string
	asked   func() // is called then, if there is one

	name, mode string
	got        map[string]string
}

const systemdPath = "/org/freedesktop/systemd1"

// StartTransientUnit is called by the bus.
func (m *manager) StartTransientUnit(name, mode string, properties []property, _ []auxiliary) (dbus.ObjectPath,
	*dbus.Error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.refusal != "" {
		return "", dbus.MakeFailedError(errors.New(m.refusal))
	}
	m.name, m.mode, m.got = name, mode, map[string]string{}
	for _, p := range properties {
		m.got[p.Name] = p.Value.String()
	}
	if m.asked != nil {
		m.asked()
	}
	job := dbus.ObjectPath(systemdPath + "/job/7")
	if m.result != "" {
		other := dbus.ObjectPath(systemdPath + "/job/6") // somebody else's
		_ = m.conn.Emit(systemdPath, "org.freedesktop.systemd1.Manager.JobRemoved", uint32(6), other, "x.service", "failed")
		_ = m.conn.Emit(systemdPath, "org.freedesktop.systemd1.Manager.JobRemoved", uint32(7), job, name, m.result)
	}
	return job, nil
}

// answer sets how the next requests end.
func (m *manager) answer(result, refusal string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.result, m.refusal = result, refusal
}

// bus starts a message bus with the manager on it.
func bus(t *testing.T, m *manager) string {
	t.Helper()
	need.Tool(t, "dbus-daemon")
	dir := t.TempDir()
	socket := filepath.Join(dir, "a bus,with=signs")
	config := `<busconfig><type>session</type><auth>EXTERNAL</auth><listen>unix:tmpdir=/nowhere</listen>` +
		`<policy context="default"><allow send_destination="*"/>` +
		`<allow receive_sender="*"/><allow own="*"/></policy></busconfig>`
	if err := os.WriteFile(filepath.Join(dir, "config"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	daemon := exec.Command("dbus-daemon", "--nofork", "--nopidfile", "--print-address=1",
		"--config-file="+filepath.Join(dir, "config"), "--address=unix:path="+dbus.EscapeBusAddressValue(socket))
	out, err := daemon.StdoutPipe()
	if err == nil {
		err = daemon.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = daemon.Process.Kill(); _ = daemon.Wait() })
	if _, err := out.Read(make([]byte, 1)); err != nil { // it listens
		t.Fatal(err)
	}
	if m.conn, err = connect(context.Background(), socket); err == nil {
		err = m.conn.Export(m, systemdPath, "org.freedesktop.systemd1.Manager")
	}
	if err == nil {
		_, err = m.conn.RequestName("org.freedesktop.systemd1", dbus.NameFlagDoNotQueue)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.conn.Close() })
	return socket
}

func TestScope(t *testing.T) {
	m := &manager{result: "done"}
	s := scope{bus: bus(t, m), unit: "sbx-one.scope", pid: 4711}
	if err := s.start(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"Description": `"sandbox of sbx"`, "PIDs": "[4711]", "Delegate": "true",
		"CollectMode": `"inactive-or-failed"`}
	m.mu.Lock()
	for name, value := range want {
		if got := m.got[name]; strings.TrimPrefix(got, "@au ") != value {
			t.Errorf("%s is %s, want %s", name, got, value)
		}
	}
	if m.name != s.unit || m.mode != "fail" || len(m.got) != len(want) {
		t.Errorf("asked for %s (%s): %v", m.name, m.mode, m.got)
	}
	m.mu.Unlock()
	for result, says := range map[string]string{"failed": `the scope's job ended as "failed"`} {
		m.answer(result, "")
		if err := s.start(t.Context()); err == nil || err.Error() != says {
			t.Errorf("%s: %v", result, err)
		}
	}
	m.answer("", "no scopes here\x1b[2J")
	var errs bytes.Buffer
	args := []string{"group", "--bus", s.bus, "--unit", s.unit, "--pid", "4711"}
	if status := run(args, nil, &errs); status != 1 || errs.String() !=
		`asking systemd for a scope: StartTransientUnit: refused "no scopes here\x1b[2J"`+"\n" {
		t.Errorf("%d, %q", status, errs.String())
	}
	// The test is in no such scope, whatever the manager says.
	m.answer("done", "")
	errs.Reset()
	args[len(args)-1] = fmt.Sprint(os.Getpid())
	if status := run(args, nil, &errs); status != 1 || !strings.Contains(errs.String(), "systemd made the scope, and") {
		t.Errorf("%d, %q", status, errs.String())
	}
	args[2] = "/nosuch"
	errs.Reset()
	if status := run(args, nil, &errs); status != 1 || !strings.Contains(errs.String(), "no such file or directory") {
		t.Errorf("%d, %q", status, errs.String())
	}
}

// A manager that never finishes is not waited for longer than agreed.
func TestScopeLate(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := scope{bus: bus(t, &manager{asked: cancel}), unit: "sbx-one.scope", pid: 4711}
	if err := s.enter(ctx); err != errLate {
		t.Errorf("%v", err)
	}
}

func TestMakeRoom(t *testing.T) {
	top := t.TempDir()
	if err := os.MkdirAll(filepath.Join(top, "user.slice/sbx-one.scope"), 0o755); err != nil {
		t.Fatal(err)
	}
	s := scope{pid: 4711}
	if err := s.makeRoom("/user.slice/sbx-one.scope", cgroup2.WithMountpoint(top)); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(top, "user.slice/sbx-one.scope", room, "cgroup.procs"))
	if err != nil || string(b) != "4711" {
		t.Errorf("%q, %v", b, err)
	}
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{nil, {"x"}, {"group", "x"}, {"allow-forward", "--all"}, {"allow-forward", "x"}} {
		var out, errs bytes.Buffer
		if status := run(args, &out, &errs); status != statusUsage || !strings.Contains(errs.String(), "usage: sbx-host") ||
			out.Len() > 0 {
			t.Errorf("%q: %d, %q", args, status, errs.String())
		}
	}
	for _, args := range [][]string{{"--help"}, {"group", "-h"}} {
		var errs bytes.Buffer
		if status := run(args, nil, &errs); status != 0 || !strings.Contains(errs.String(), "usage: sbx-host") {
			t.Errorf("%q: %d, %q", args, status, errs.String())
		}
	}
	if got := oneLine("a\nb\x1b[2J é\n"); got != "a; b[2J " {
		t.Errorf("%q", got)
	}
	if i := slices.Index(accepts()[0], "sbx+"); i != 1 {
		t.Errorf("the first rule is about another device: %v", accepts()[0])
	}
}
