//go:build linux

package doors

import (
	"crypto/sha1"
	"errors"
	"io"
	"net"
	"path"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/quoting"
)

const (
	gpgRelay = "gpg-agent"      // in the session's folder
	gpgHome  = "/run/sbx/gnupg" // inside: empty, but for the agent's socket
)

// gpgAgent grants the socket that a GnuPG agent has for others: it signs and decrypts, and neither tells nor changes
// keys.
func (d *Doors) gpgAgent() error {
	in := d.In
	var found string
	places := d.gpgSockets(in.Facts)
	for _, p := range places {
		if st, err := in.FS.Lstat(p); err == nil && st.Type == host.Socket {
			found = p
			break
		}
	}
	if found == "" {
		return &planner.Refusal{What: "--gpg-agent: there is no restricted socket of an agent at " +
			quoting.Quote(places[len(places)-1]),
			Hint: "start one with gpgconf --launch gpg-agent; extra-socket in gpg-agent.conf must not be none"}
	}
	in.Grants = append(in.Grants, planner.Grant{Path: gpgHome, Mode: planner.Scratch, Why: "--gpg-agent"})
	in.Env = append(in.Env, "GNUPGHOME="+gpgHome)
	// The second is where tools that were told of the restricted socket look; a runtime directory that others may read, as
	// it is then, has gpg itself look in its home.
	for _, p := range [...]string{gpgHome + "/S.gpg-agent", "/run/user/" + strconv.Itoa(int(in.Facts.UID)) +
		"/gnupg/S.gpg-agent.extra"} {
		in.Grants = append(in.Grants, planner.Grant{Path: p, Source: gpgRelay, Mode: planner.Write, Explicit: true,
			Socket: true, Why: "--gpg-agent"})
	}
	d.add(Door{name: "gpg-agent", path: gpgHome + "/S.gpg-agent", why: d.Settings.Origin("features.gpg_agent"),
		file: gpgRelay,
		of:   "the GnuPG agent", serve: func(l *net.UnixListener, _ Session, _ Refuser) { lead(l, found) }})
	return nil
}

// gpgSockets are where GnuPG puts it: in the runtime directory, for another home than ~/.gnupg in a directory with a
// name of its own, or in that home (common/homedir.c).
func (d *Doors) gpgSockets(facts host.Facts) []string {
	const name = "/S.gpg-agent.extra"
	runtime := "/run/user/" + strconv.Itoa(int(facts.UID)) + "/gnupg"
	home := facts.Home + "/.gnupg"
	if h := host.Lookup(d.Env, "GNUPGHOME"); path.IsAbs(h) && path.Clean(h) != home {
		return []string{runtime + "/d." + zbase32(sha1.Sum([]byte(path.Clean(h)))) + name, path.Clean(h) + name}
	}
	return []string{runtime + name, home + name}
}

// zbase32 writes the first 15 bytes.
func zbase32(sum [sha1.Size]byte) string {
	const digits = "ybndrfg8ejkmcpqxot1uwisza345h769"
	var out []byte
	for i := 0; i < 15; i += 5 {
		v := uint64(sum[i])<<32 | uint64(sum[i+1])<<24 | uint64(sum[i+2])<<16 | uint64(sum[i+3])<<8 | uint64(sum[i+4])
		for shift := 35; shift >= 0; shift -= 5 {
			out = append(out, digits[v>>shift&31])
		}
	}
	return string(out)
}

// maxLed is how many connections one socket leads on at a time.
const maxLed = 64

// lead carries what connects to l to the socket.
func lead(l *net.UnixListener, socket string) {
	room := make(chan struct{}, maxLed)
	for {
		c, err := l.AcceptUnix()
		if errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) {
			time.Sleep(100 * time.Millisecond)
			continue
		}
		if err != nil {
			return
		}
		room <- struct{}{}
		go func() {
			defer func() { <-room }()
			defer c.Close()
			to, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: socket, Net: "unix"})
			if err != nil {
				return
			}
			defer to.Close()
			done := make(chan struct{})
			go func() {
				defer close(done)
				_, _ = io.Copy(to, c)
				_ = to.CloseWrite()
			}()
			_, _ = io.Copy(c, to)
			c.Close()
			<-done
		}()
	}
}
