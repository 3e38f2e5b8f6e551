//go:build linux

package doors

import (
	"errors"
	"os"
	"path"
	"strconv"

	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/relay"
	"sbx.example/sbx/broker/internal/request"
	"sbx.example/sbx/broker/internal/session"
	"sbx.example/sbx/broker/internal/wayland"
)

const (
	waylandRelay  = "wayland"               // in the session's folder
	waylandInside = "/run/sbx/wayland.sock" // inside
)

// wayland grants a socket that the compositor itself serves as a sandboxed program's.
func (d *Doors) wayland() error {
	display := host.Lookup(d.Env, "WAYLAND_DISPLAY")
	if display == "" {
		return &planner.Refusal{What: "--wayland: WAYLAND_DISPLAY is not set, so there is no compositor"}
	}
	if !path.IsAbs(display) {
		runtime := "/run/user/" + strconv.Itoa(int(d.In.Facts.UID))
		display = path.Join(request.Absolute(d.Env, "XDG_RUNTIME_DIR", runtime), display)
	}
	at, compositor, err := d.hold("--wayland", display)
	if err != nil {
		return err
	}
	d.In.Env = append(d.In.Env, "WAYLAND_DISPLAY="+waylandInside)
	d.relayed("--wayland", Door{name: "wayland", path: waylandInside, why: d.Settings.Origin("features.wayland"),
		file: waylandRelay, of: "the compositor", spawn: func(socket string) (func(), error) {
			return sandboxedDisplay(at, compositor, socket, d.In.Session)
		}})
	return nil
}

// sandboxedDisplay makes the socket and hands it to the compositor, whose own is at.
func sandboxedDisplay(at string, compositor *relay.Upstream, socket, sid string) (func(), error) {
	l, err := relay.Listen(socket)
	if err != nil {
		return nil, &planner.Refusal{What: "making the socket " + path.Base(socket) + " in the session's folder", Err: err,
			Hint: session.RecordHint}
	}
	defer l.Close() // the compositor has its own
	f, err := l.File()
	if err == nil {
		defer f.Close()
		var stop func()
		if stop, err = handOver(compositor, f, sid); err == nil {
			return stop, nil
		}
	}
	hint := ""
	if errors.Is(err, wayland.ErrUnknown) {
		hint = "it would let a program inside see the screen, the clipboard and typed keys; --socket " + at +
			" with --env WAYLAND_DISPLAY=" + at + " grants it as it is"
	}
	return nil, &planner.Refusal{What: "--wayland", Err: err, Hint: hint}
}

func handOver(compositor *relay.Upstream, l *os.File, sid string) (stop func(), err error) {
	c, err := compositor.Connect()
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return wayland.Listen(c, l, wayland.Context{Engine: "sbx", App: "sbx", Instance: sid})
}
