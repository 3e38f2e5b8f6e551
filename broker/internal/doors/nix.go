//go:build linux

package doors

import (
	"net"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/decide"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/nixdaemon"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/quoting"
	"sbx.example/sbx/broker/internal/relay"
	"sbx.example/sbx/broker/internal/request"
)

const (
	nixStore  = "/nix/store"
	nixSocket = "/nix/var/nix/daemon-socket/socket"
	nixConf   = "/etc/nix/nix.conf"

	nixDaemon  = "the Nix daemon" // as people are told
	nixRelayed = "nix-daemon"     // in the session's folder
)

// Stores grants the stores of packages: that of a multi-user Nix, which is found by itself, and those of the
// configuration.
func (d *Doors) Stores() error {
	s, in := d.Settings, d.In
	if err := d.nix(); err != nil {
		return err
	}
	for i, st := range s.PackageStores() {
		from := s.Origin("features.stores")
		if o := s.Origins["features.stores"]; i < len(o) {
			from = o[i].String()
		}
		in.Grants = append(in.Grants, planner.Grant{Path: st.Path, Mode: planner.Read, Explicit: true, Why: from})
		if st.Socket == "" {
			continue
		}
		var p string
		var err error
		if st.Protocol == "nix" { // the filter makes the difference to what is refused
			p, err = d.find("[[store]]", st.Socket)
		} else {
			p, err = d.socket("[[store]]", st.Socket)
		}
		if err != nil {
			return err
		}
		g := planner.Grant{Path: p, Mode: planner.Write, Explicit: true, Socket: true, Why: from}
		x := Door{name: "store " + st.Path, path: p, why: from}
		if st.Protocol == "nix" {
			canon, _, _, err := host.Resolve(in.FS, st.Path)
			if err != nil {
				return &planner.Refusal{What: "[[store]] " + quoting.Quote(st.Path), Err: err}
			}
			daemon, err := held("[[store]]", p)
			if err != nil {
				return err
			}
			g.Source = "store-" + strconv.Itoa(i)
			x.file, x.of, x.serve = g.Source, nixDaemon, d.nixRelay(g.Source, daemon, p, canon)
		}
		in.Grants = append(in.Grants, g)
		d.add(x)
	}
	return nil
}

// nix grants the store of the host's Nix and its daemon behind a filter. It is on where the daemon is found, but not in
// the strict profile, and not where the daemon would let a build do whatever it likes.
func (d *Doors) nix() error {
	r, s, in := d.Request, d.Settings, d.In
	asked := len(s.Origins["features.nix"]) > 0
	if r.Nix == "off" || asked && !s.Features.Nix {
		return nil
	}
	_, locked := s.Locked["features.nix"]
	locked = locked || in.InPlace || s.Sandbox.Backend == "vm" // where no socket leads out
	if !asked && (locked || s.Profile.Name == "strict" || s.Profile.Extends == "strict" || r.OnlyNamed(s)) {
		return nil
	}
	st, err := in.FS.Lstat(nixSocket)
	if err != nil || st.Type != host.Socket || !in.FS.Access(nixSocket, unix.W_OK) {
		if asked {
			return &planner.Refusal{What: "--nix: there is no Nix daemon to talk to at " + nixSocket, Err: err,
				Hint: "start nix-daemon, or name its store and socket with [[store]] in the configuration"}
		}
		return nil
	}
	if unconfinedBuilds(readNixConf(host.ReadFile)) {
		in.Losses = append(in.Losses, unconfinedLoss(asked))
		if !asked {
			return nil
		}
	}
	if r.Nix == "fetch" {
		if !allHosts(s) {
			return &planner.Refusal{What: "--nix=fetch: the daemon's builds would use the network, which this session does " +
				"not have as a whole", Hint: "add --allow-network, or leave =fetch away"}
		}
		in.Losses = append(in.Losses, planner.Loss{What: "nix",
			Why: "with --nix=fetch builds of the daemon fetch beside the rules of this session's network, also from the " +
				"host's own addresses"})
	}
	at, err := d.find("--nix", nixSocket)
	if err != nil {
		return err
	}
	daemon, err := held("--nix", at)
	if err != nil {
		return err
	}
	d.grantNix(daemon, asked)
	return nil
}

// unconfinedBuilds says whether the daemon lets a build do whatever it likes.
func unconfinedBuilds(conf map[string]string) bool {
	return conf["sandbox"] == "false" || conf["build-use-sandbox"] == "false"
}

// unconfinedLoss says what it means that it does: without having been asked for, the daemon is not granted then.
func unconfinedLoss(asked bool) planner.Loss {
	if asked {
		return planner.Loss{What: "nix", Why: nixConf +
			" switches the daemon's own sandbox off, so a build can read what everybody can and use the network",
			Fix: "set sandbox = true there"}
	}
	return planner.Loss{What: "nix", Why: "not granted by itself, as " + nixConf +
		" switches the daemon's own sandbox off: what a build does there, no rule of this session holds back",
		Fix: "set sandbox = true there, or pass --nix to accept it"}
}

// grantNix shows the store and the profiles, and the daemon behind its filter.
func (d *Doors) grantNix(daemon *relay.Upstream, asked bool) {
	s, in := d.Settings, d.In
	why := s.Origin("features.nix")
	if !asked {
		why = "a Nix daemon was found"
	}
	shown := []string{nixStore, "/nix/var/nix/profiles", nixConf}
	if in.Facts.Home != "" {
		shown = append(shown, in.Facts.Home+"/.local/state/nix/profiles")
	}
	for _, p := range shown {
		in.Grants = append(in.Grants, planner.Grant{Path: p, Mode: planner.Read, Optional: true, Explicit: asked, Why: why})
	}
	in.Env = append(in.Env, "NIX_REMOTE=daemon")
	if !s.Profile.HasCaches() { // no caches: Nix wants one
		in.Env = append(in.Env, "XDG_CACHE_HOME=/tmp/.cache")
	}
	d.relayed(why, Door{name: "nix", path: nixSocket, why: why, file: nixRelayed, of: nixDaemon,
		serve: d.nixRelay(nixRelayed, daemon, nixSocket, nixStore)})
}

// allHosts says whether every public address can be reached: with a list, what the daemon fetches would not follow it.
func allHosts(s request.Settings) bool {
	reach, _ := s.Reach(false)
	return reach == policy.AllHosts
}

// nixRelay serves a daemon's socket, which is inside at a path, through the filter.
func (d *Doors) nixRelay(name string, to *relay.Upstream, inside, store string) func(*net.UnixListener, Session,
	Refuser) {
	opt := nixdaemon.Options{Daemon: to, Store: store, Fetch: d.Request.Nix == "fetch"}
	all := allHosts(d.Settings)
	return func(l *net.UnixListener, x Session, refused Refuser) {
		opt.Door = x.door(path.Join(d.dir, name))
		opt.Network = all && d.In.JoinNet // it may have been left out where it cannot be had
		opt.Host = readNixConf(host.ReadFile)
		opt.Refused = func(q nixdaemon.Request) {
			refused(decide.Ask{PID: q.PID, Path: decide.Below(inside, q.What)}, q.Reason)
		}
		nixdaemon.New(opt).Serve(l)
	}
}

// maxNixIncludes is how deep files of settings include others.
const maxNixIncludes = 8

// readNixConf reads the settings of the host's Nix, and of the files that it includes beside it.
func readNixConf(file func(string) ([]byte, error)) map[string]string {
	conf := map[string]string{}
	var read func(p string, depth int)
	read = func(p string, depth int) {
		b, err := file(p)
		if err != nil || depth > maxNixIncludes {
			return
		}
		for line := range strings.SplitSeq(string(b), "\n") {
			line, _, _ = strings.Cut(line, "#")
			f := strings.Fields(line)
			switch {
			case len(f) == 2 && (f[0] == "include" || f[0] == "!include"):
				if inc := f[1]; path.IsAbs(inc) {
					read(inc, depth+1)
				} else {
					read(path.Join(path.Dir(p), inc), depth+1)
				}
			case len(f) >= 2 && f[1] == "=":
				conf[f[0]] = strings.Join(f[2:], " ")
			}
		}
	}
	read(nixConf, 0)
	return conf
}
