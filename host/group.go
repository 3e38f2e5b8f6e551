//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/containerd/cgroups/v3/cgroup2"
	systemd "github.com/coreos/go-systemd/v22/dbus"
	"github.com/godbus/dbus/v5"
)

// patience bounds the wait for systemd. sbx waits a little longer.
const patience = 5 * time.Second

// room is the group below the scope in which the broker lives: a group with processes shares out no controllers.
const room = "broker"

// scope is what is asked of the user's systemd: a unit with one process, delegated to the user.
type scope struct {
	bus, unit string
	pid       int
}

var errLate = errors.New("systemd did not make the scope in time")

// enter has systemd put the process in a scope, and moves it to a group below.
func (s scope) enter(ctx context.Context) error {
	if s.bus == "" || s.unit == "" || s.pid <= 0 {
		return errors.New("--bus, --unit and --pid are all needed")
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := s.start(ctx)
	if ctx.Err() != nil {
		return errLate
	}
	if err != nil {
		return fmt.Errorf("asking systemd for a scope: %w", err)
	}
	group, err := cgroup2.PidGroupPath(s.pid)
	if err != nil {
		return err
	}
	if filepath.Base(group) != s.unit {
		return fmt.Errorf("systemd made the scope, and process %d is in %s", s.pid, group)
	}
	return s.makeRoom(group)
}

// makeRoom moves the process to a group below its own.
func (s scope) makeRoom(group string, opts ...cgroup2.InitOpts) error {
	parent, err := cgroup2.Load(group, opts...)
	if err != nil {
		return err
	}
	child, err := parent.NewChild(room, nil)
	if err != nil {
		return err
	}
	return child.AddProc(uint64(s.pid))
}

// start makes the unit and waits until systemd is done with it. It goes when its last process does, failed or not.
func (s scope) start(ctx context.Context) error {
	manager, err := systemd.NewConnection(func() (*dbus.Conn, error) { return connect(ctx, s.bus) })
	if err != nil {
		return err
	}
	defer manager.Close()
	done := make(chan string, 1)
	_, err = manager.StartTransientUnitContext(ctx, s.unit, "fail", []systemd.Property{
		systemd.PropDescription("sandbox of sbx"),
		systemd.PropPids(uint32(s.pid)),
		{Name: "Delegate", Value: dbus.MakeVariant(true)},
		{Name: "CollectMode", Value: dbus.MakeVariant("inactive-or-failed")},
	}, done)
	if refusal, ok := err.(dbus.Error); ok {
		return fmt.Errorf("StartTransientUnit: refused %q", refusal.Error())
	}
	if err != nil {
		return err
	}
	select {
	case result := <-done:
		if result != "done" {
			return fmt.Errorf("the scope's job ended as %q", result)
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// connect opens a connection to the bus at a path. What ctx ends is closed, so that nothing waits longer.
func connect(ctx context.Context, bus string) (*dbus.Conn, error) {
	c, err := dbus.Dial("unix:path="+dbus.EscapeBusAddressValue(bus), dbus.WithContext(ctx))
	if err != nil {
		return nil, err
	}
	// By number: looking for a name would read /etc/passwd.
	if err = c.Auth([]dbus.Auth{dbus.AuthExternal(strconv.Itoa(os.Getuid()))}); err == nil {
		err = c.Hello()
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}
