//go:build linux

package nixdaemon

import (
	"runtime"
	"slices"
	"strings"
)

// harmless are the settings that a daemon takes from everybody. That of how long a connection may take is not one: a
// substitute that is not reached would be built.
var harmless = [...]string{"timeout", "build-timeout", "max-silent-time", "build-max-silent-time",
	"build-poll-interval"}

// silent are settings that every client sends because the system's nix.conf has them, or that say nothing to a daemon.
var silent = [...]string{"experimental-features", "extra-experimental-features", "build-users-group", "allowed-users",
	"trusted-users", "warn-dirty", "accept-flake-config", "system", "cores", "max-jobs",
	"build-max-jobs", "build-cores", "keep-going", "keep-failed", "fallback", "substitute", "builders-use-substitutes",
	"auto-optimise-store", "show-trace", "log-lines", "print-missing", "use-sqlite-wal", "connect-timeout",
	"use-xdg-base-directories"}

// options is the message with which a client sets what holds for its connection.
type options struct {
	keepFailed, keepGoing, tryFallback uint64
	verbosity, maxJobs, maxSilent      uint64
	hook, verboseBuild, logType, trace uint64
	cores, substitute                  uint64
	overrides                          [][2]string
}

func (r *reader) options() (o options) {
	for _, p := range o.numbers() {
		*p = r.num()
	}
	for n := r.num(); n > 0 && r.err == nil; n-- {
		o.overrides = append(o.overrides, [2]string{r.str(), r.str()})
	}
	return o
}

func (o *options) numbers() []*uint64 {
	return []*uint64{&o.keepFailed, &o.keepGoing, &o.tryFallback, &o.verbosity, &o.maxJobs, &o.maxSilent, &o.hook,
		&o.verboseBuild, &o.logType, &o.trace, &o.cores, &o.substitute}
}

func (o *options) bytes() []byte {
	b := appendNum(nil, opSetOptions)
	for _, p := range o.numbers() {
		b = appendNum(b, *p)
	}
	b = appendNum(b, uint64(len(o.overrides)))
	for _, s := range o.overrides {
		b = appendStr(appendStr(b, s[0]), s[1])
	}
	return b
}

// reduce takes out what the sandbox may not decide and returns the names that somebody should hear about.
func (o *options) reduce(opt *Options) (refused []string) {
	o.keepFailed = 0 // a failed build would stay in the host's /tmp
	if !opt.Fetch {
		o.tryFallback = 0 // what cannot be fetched would be built, with the network
	}
	cpus := uint64(runtime.NumCPU())
	o.maxJobs, o.cores = min(o.maxJobs, cpus), min(o.cores, cpus)
	if !opt.Network {
		o.substitute = 0
	}
	var keep [][2]string
	for _, s := range o.overrides {
		name, value := s[0], s[1]
		switch {
		case slices.Contains(harmless[:], name):
			keep = append(keep, s)
		case name == "builders" && value == "":
		case name == "substituters" && opt.Network && opt.knows(name, value):
			keep = append(keep, s)
		case slices.Contains(silent[:], name) || opt.knows(name, value):
		default:
			refused = append(refused, name)
		}
	}
	if !opt.Network {
		keep = append(keep, [2]string{"builders", ""}) // other machines are reached by the network
	}
	o.overrides = keep
	return refused
}

// builtinSubstituter is what nix.conf(5) has for substituters when nobody sets them.
const builtinSubstituter = "https://cache.nixos.org/"

// knows says whether the host's own configuration has every word of a value: clients send all of that along.
// Substituters that it does not have are not passed on, as no rule of the session's network would hold the daemon back.
func (opt *Options) knows(name, value string) bool {
	own := strings.Fields(opt.Host[name] + " " + opt.Host["extra-"+name])
	if name == "substituters" {
		own = append(own, strings.Fields(builtinSubstituter+" "+opt.Host["trusted-substituters"]+" "+
			opt.Host["extra-trusted-substituters"])...)
	}
	for _, s := range strings.Fields(value) {
		if !slices.ContainsFunc(own, func(o string) bool { return strings.TrimRight(o, "/") == strings.TrimRight(s, "/") }) {
			return false
		}
	}
	return true
}
