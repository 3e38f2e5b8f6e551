//go:build linux

package doors

import (
	"fmt"
	"os"
	"path"
	"strings"
	"syscall"
	"time"

	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/program"
	"sbx.example/sbx/broker/internal/quoting"
	"sbx.example/sbx/broker/internal/request"
)

const (
	busRelay  = "bus"          // in the session's folder
	busInside = "/run/sbx/bus" // inside
)

// busRules is what every program on the filtered bus may do: show a notification and hear what became of it.
var busRules = [...]string{
	"--call=org.freedesktop.Notifications=org.freedesktop.Notifications.*@/org/freedesktop/Notifications",
	"--broadcast=org.freedesktop.Notifications=org.freedesktop.Notifications.*@/org/freedesktop/Notifications",
}

// dbus grants the session bus behind its filter.
func (d *Doors) dbus() error {
	spawn, err := d.busRelay(request.Programs(d.Env, d.Settings, d.In))
	if err != nil {
		return err
	}
	d.In.Env = append(d.In.Env, "DBUS_SESSION_BUS_ADDRESS=unix:path="+busInside)
	d.relayed("--dbus", Door{name: strings.Join(append([]string{"dbus"}, d.Request.BusNames...), " "), path: busInside,
		why: d.Settings.Origin("features.dbus"), file: busRelay, spawn: spawn})
	return nil
}

// busRelay is the session bus behind xdg-dbus-proxy, the filter that Flatpak uses.
func (d *Doors) busRelay(from program.Source) (func(string) (func(), error), error) {
	address, err := host.SessionBus(d.Env)
	if err != nil {
		return nil, &planner.Refusal{What: "--dbus", Err: err, Hint: "other addresses can start programs"}
	}
	if address == "" {
		return nil, &planner.Refusal{What: "--dbus: DBUS_SESSION_BUS_ADDRESS is not set, so there is no session bus",
			Hint: "leave the option out, or run sbx in a desktop session"}
	}
	for a := range strings.SplitSeq(address, ";") { // the filter connects to each by its name
		name, err := socketOf(a)
		if err != nil {
			return nil, &planner.Refusal{What: "--dbus: DBUS_SESSION_BUS_ADDRESS", Err: err}
		}
		if strings.HasPrefix(name, "@") {
			continue
		}
		if _, err := d.find("--dbus", name); err != nil {
			return nil, err
		}
	}
	proxy, err := from.Find("xdg-dbus-proxy")
	if err != nil {
		return nil, &planner.Refusal{What: "--dbus: finding the filter of the bus", Err: err,
			Hint: "install the package xdg-dbus-proxy; sbx never passes the bus on unfiltered"}
	}
	return func(socket string) (func(), error) {
		if err := checkOwners(address, d.Request.BusNames); err != nil {
			return nil, &planner.Refusal{What: "--dbus", Err: err}
		}
		return spawnBus(proxy, address, socket, d.Request.BusNames)
	}, nil
}

// spawnBus starts the filter and waits until its socket is there. It ends when the pipe that it watches does, so it
// does not outlive the broker however that dies.
func spawnBus(proxy program.Program, address, socket string, names []string) (func(), error) {
	fail := func(err error) (func(), error) {
		return nil, &planner.Refusal{What: "starting the filter of the session bus, " + proxy.String(), Err: err}
	}
	ours, theirs, err := os.Pipe()
	if err != nil {
		return fail(err)
	}
	dir, err := os.Open(path.Dir(socket))
	if err != nil {
		ours.Close()
		theirs.Close()
		return fail(err)
	}
	defer dir.Close()
	// A socket's address has room for 107 bytes, so it is named below the descriptor of its directory.
	args := append([]string{"--fd=3", address, "/proc/self/fd/4/" + path.Base(socket), "--filter"}, busRules[:]...)
	for _, n := range names {
		args = append(args, "--talk="+n)
	}
	cmd := proxy.Command(args...)
	cmd.Env = append(cmd.Env, "LANG=C")
	cmd.ExtraFiles = []*os.File{theirs, dir}
	said := program.Limited{Left: 1024} // it goes on for as long as the session
	cmd.Stderr, cmd.WaitDelay = &said, time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a Ctrl-C at the terminal is for the program inside
	err = cmd.Start()
	theirs.Close()
	if err != nil {
		ours.Close()
		return fail(err)
	}
	stop := func() {
		ours.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	_ = ours.SetReadDeadline(time.Now().Add(10 * time.Second))
	if n, err := ours.Read(make([]byte, 1)); n != 1 { // one byte says that it is ready
		stop()
		return fail(fmt.Errorf("it did not come up: %w: %s", err, quoting.ASCII(strings.TrimSpace(said.String()))))
	}
	return stop, nil
}
