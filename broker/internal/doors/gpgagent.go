//go:build linux

package doors

import (
	"crypto/sha1"
	"io"
	"net"
	"path"
	"strconv"

	"sbx.example/sbx/broker/internal/decide"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/quoting"
	"sbx.example/sbx/broker/internal/relay"
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
	_, agent, err := d.hold("--gpg-agent", found)
	if err != nil {
		return err
	}
	d.add(Door{name: "gpg-agent", path: gpgHome + "/S.gpg-agent", why: d.Settings.Origin("features.gpg_agent"),
		file: gpgRelay,
		of:   "the GnuPG agent", serve: d.lead(agent, gpgRelay, gpgHome+"/S.gpg-agent")})
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
const maxLed = 256

// lead serves a door that passes everything on: its file in the session's folder, and where it is inside.
func (d *Doors) lead(to *relay.Upstream, file, inside string) func(*net.UnixListener, Session, Refuser) {
	return func(l *net.UnixListener, x Session, refused Refuser) {
		s := relay.New(2 * maxLed)
		s.Door = x.door(path.Join(d.dir, file))
		s.Accept(l, func(c *net.UnixConn) {
			up, err := s.Dial(to)
			if err != nil {
				refused(decide.Ask{PID: s.PID(c), Path: path.Join(inside, "connect")}, err.Error())
				return
			}
			defer s.Leave(up)
			done := make(chan struct{})
			go func() {
				defer close(done)
				_, _ = io.Copy(up, c)
				_ = up.CloseWrite()
			}()
			_, _ = io.Copy(c, up)
			c.Close()
			<-done
		})
	}
}
