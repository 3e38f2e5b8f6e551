//go:build linux

package bwrap

import (
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// What each option does to what was read so far.

// set returns what an option without arguments does.
func set(field func(*request) *bool) func(*parser, []string) error {
	return func(p *parser, _ []string) error {
		*field(&p.request) = true
		return nil
	}
}

// number returns what an option with a descriptor does, of which the last counts.
func number(field func(*request) *int) func(*parser, []string) error {
	return func(p *parser, v []string) error {
		n, err := fd(v[1])
		if err == nil {
			f := field(&p.request)
			p.once(*f >= 0, v[0])
			*f = n
		}
		return err
	}
}

// id is number for an id.
func id(what string, field func(*request) *int) func(*parser, []string) error {
	return func(p *parser, v []string) error {
		n, err := strconv.ParseInt(v[1], 10, 32)
		if err != nil || n < 0 {
			return fail("Invalid %s: %s", what, v[1])
		}
		f := field(&p.request)
		p.once(*f >= 0, v[0])
		*f = int(n)
		return nil
	}
}

func (p *parser) add(o operation) error {
	p.ops = append(p.ops, o)
	return nil
}

func bind(do action) func(*parser, []string) error {
	return func(p *parser, v []string) error {
		return p.add(operation{do: do, source: v[1], dest: v[2], fd: -1, perms: -1, try: strings.HasSuffix(v[0], "-try")})
	}
}

func bindFD(do action) func(*parser, []string) error {
	return func(p *parser, v []string) error {
		n, err := fd(v[1])
		if err != nil {
			return err
		}
		return p.add(operation{do: do, source: "/proc/self/fd/" + strconv.Itoa(n), dest: v[2], fd: n, perms: -1})
	}
}

// place returns what an option does that has a place alone.
func place(do action) func(*parser, []string) error {
	return func(p *parser, v []string) error { return p.add(operation{do: do, dest: v[1], fd: -1, perms: -1}) }
}

// file returns what an option does that makes a file of a descriptor.
func file(do action, mode int) func(*parser, []string) error {
	return func(p *parser, v []string) error {
		n, err := fd(v[1])
		if err != nil {
			return err
		}
		return p.add(operation{do: do, fd: n, dest: v[2], perms: p.takePerms(mode)})
	}
}

// takePerms is the mode that was given for this operation, or the usual one.
func (p *parser) takePerms(usual int) int {
	mode := p.perms
	if p.perms = -1; mode < 0 {
		return usual
	}
	return mode
}

func (p *parser) dev(v []string) error {
	p.needsPTS = true
	return p.add(operation{do: dev, dest: v[1], fd: -1, perms: -1})
}

func (p *parser) tmpfs(v []string) error {
	o := operation{do: tmpfs, dest: v[1], fd: -1, perms: p.takePerms(0o755), size: p.size}
	p.size = 0
	return p.add(o)
}

func (p *parser) dir(v []string) error {
	return p.add(operation{do: dir, dest: v[1], fd: -1, perms: p.takePerms(0o755)})
}

func (p *parser) symlink(v []string) error {
	return p.add(operation{do: symlink, source: v[1], dest: v[2], fd: -1, perms: -1})
}

func (p *parser) overlaySrc(v []string) error {
	p.layers = append(p.layers, v[1])
	return nil
}

// takeLayers are the layers that were given for this overlay, topmost first.
func (p *parser) takeLayers(v []string, least int) ([]string, error) {
	layers := p.layers
	switch {
	case len(layers) < least && least == 1:
		return nil, fail("%s requires at least one --overlay-src", v[0])
	case len(layers) < least:
		return nil, fail("%s requires at least two --overlay-src", v[0])
	}
	p.layers = nil
	slices.Reverse(layers)
	return layers, nil
}

func (p *parser) overlay(v []string) error {
	layers, err := p.takeLayers(v, 1)
	if err != nil {
		return err
	}
	return p.add(operation{do: overlayRW, source: v[1], work: v[2], dest: v[3], layers: layers, fd: -1, perms: -1})
}

func (p *parser) tmpOverlay(v []string) error {
	layers, err := p.takeLayers(v, 1)
	if err != nil {
		return err
	}
	return p.add(operation{do: overlayTmp, dest: v[1], layers: layers, fd: -1, perms: -1})
}

func (p *parser) roOverlay(v []string) error {
	layers, err := p.takeLayers(v, 2)
	if err != nil {
		return err
	}
	return p.add(operation{do: overlayRO, dest: v[1], layers: layers, fd: -1, perms: -1})
}

// octal reads a mode.
func octal(option, word string) (int, error) {
	n, err := strconv.ParseUint(word, 8, 32)
	if err != nil || n > 0o7777 {
		return 0, fail("%s takes an octal argument <= 07777", option)
	}
	return int(n), nil
}

func (p *parser) setPerms(v []string) (err error) {
	if p.perms >= 0 {
		return fail("--perms given twice for the same action")
	}
	p.perms, err = octal(v[0], v[1])
	if err != nil {
		p.perms = -1
	}
	return err
}

func (p *parser) setSize(v []string) error {
	if p.size != 0 {
		return fail("--size given twice for the same action")
	}
	n, err := strconv.ParseUint(v[1], 0, 64)
	if err != nil || n == 0 || strings.Contains(v[1], "_") || v[1][0] < '0' || v[1][0] > '9' {
		return fail("--size takes a non-zero number of bytes")
	}
	if n > maxTmpfs {
		return fail("--size (for tmpfs) is limited to %d", maxTmpfs)
	}
	p.size = n
	return nil
}

func (p *parser) chmod(v []string) error {
	mode, err := octal(v[0], v[1])
	if err != nil {
		return err
	}
	return p.add(operation{do: chmod, dest: v[2], fd: -1, perms: mode})
}

// args reads more words where they are asked for.
func (p *parser) args(v []string) error {
	if p.inFile {
		return fail("--args not supported in arguments file")
	}
	n, err := fd(v[1])
	if err != nil {
		return err
	}
	data, err := p.load(n)
	if err != nil {
		return failErrno(err, "Can't read --args data")
	}
	p.read = append(p.read, n)
	var words []string
	if len(data) > 0 {
		words = strings.Split(strings.TrimSuffix(string(data), "\x00"), "\x00")
	}
	p.count += len(words)
	p.inFile = true
	_, err = p.words(words) // what follows options there is nobody's
	p.inFile = false
	return err
}

func (p *parser) argv0(v []string) error {
	if p.arg0 != nil {
		return fail("--argv0 used multiple times")
	}
	p.arg0 = &v[1]
	return nil
}

func (p *parser) unshareAll([]string) error {
	p.userTry, p.ipc, p.pid, p.uts, p.cgroupTry, p.net = true, true, true, true, true, true
	return nil
}

func (p *parser) shareNet([]string) error {
	p.net = false
	return nil
}

func (p *parser) hostname(v []string) error {
	p.once(p.host != nil, v[0])
	p.host = &v[1]
	return nil
}

func (p *parser) chdir(v []string) error {
	p.once(p.start != nil, v[0])
	p.start = &v[1]
	return nil
}

func (p *parser) lockFile(v []string) error {
	p.locks = append(p.locks, v[1])
	return nil
}

func (p *parser) label([]string) error { return fail("labeling not supported on this system") }

func (p *parser) seccomp(v []string) error {
	if len(p.filters) > 0 {
		return fail("--seccomp cannot be combined with --add-seccomp-fd")
	}
	return number(func(r *request) *int { return &r.filter })(p, v)
}

func (p *parser) addSeccomp(v []string) error {
	if p.filter >= 0 {
		return fail("--add-seccomp-fd cannot be combined with --seccomp")
	}
	n, err := fd(v[1])
	if err == nil {
		p.filters = append(p.filters, n)
	}
	return err
}

func (p *parser) clearenv([]string) error {
	p.env = nil
	return nil
}

func (p *parser) setenv(v []string) error {
	if v[1] == "" || strings.Contains(v[1], "=") {
		return failErrno(syscall.EINVAL, "setenv failed")
	}
	p.env = withVariable(p.env, v[1], v[2])
	return nil
}

func (p *parser) unsetenv(v []string) error {
	if v[1] == "" || strings.Contains(v[1], "=") {
		return failErrno(syscall.EINVAL, "unsetenv failed")
	}
	p.env = slices.DeleteFunc(p.env, func(e string) bool { return strings.HasPrefix(e, v[1]+"=") })
	return nil
}

// withVariable sets a variable in place, or at the end.
func withVariable(env []string, name, value string) []string {
	for i, e := range env {
		if strings.HasPrefix(e, name+"=") {
			env[i] = name + "=" + value
			return env
		}
	}
	return append(env, name+"="+value)
}

// variable is the value of a variable.
func variable(env []string, name string) (string, bool) {
	for _, e := range env {
		if v, ok := strings.CutPrefix(e, name+"="); ok {
			return v, true
		}
	}
	return "", false
}

// capability returns what --cap-add and --cap-drop do.
func capability(add bool) func(*parser, []string) error {
	return func(p *parser, v []string) error {
		mask := ^uint64(0)
		if !strings.EqualFold(v[1], "ALL") {
			n := slices.IndexFunc(capabilities[:], func(c string) bool { return strings.EqualFold(c, v[1]) })
			if n < 0 {
				return fail("unknown cap: %s", v[1])
			}
			mask = 1 << n
		}
		p.changesRights = true
		if p.keep &^= mask; add {
			p.keep |= mask
		}
		return nil
	}
}

// capabilities are the names by number (capabilities(7)).
var capabilities = [...]string{"CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_DAC_READ_SEARCH", "CAP_FOWNER", "CAP_FSETID",
	"CAP_KILL", "CAP_SETGID", "CAP_SETUID", "CAP_SETPCAP", "CAP_LINUX_IMMUTABLE", "CAP_NET_BIND_SERVICE",
	"CAP_NET_BROADCAST", "CAP_NET_ADMIN", "CAP_NET_RAW", "CAP_IPC_LOCK", "CAP_IPC_OWNER", "CAP_SYS_MODULE",
	"CAP_SYS_RAWIO", "CAP_SYS_CHROOT", "CAP_SYS_PTRACE", "CAP_SYS_PACCT", "CAP_SYS_ADMIN", "CAP_SYS_BOOT",
	"CAP_SYS_NICE", "CAP_SYS_RESOURCE", "CAP_SYS_TIME", "CAP_SYS_TTY_CONFIG", "CAP_MKNOD", "CAP_LEASE",
	"CAP_AUDIT_WRITE", "CAP_AUDIT_CONTROL", "CAP_SETFCAP", "CAP_MAC_OVERRIDE", "CAP_MAC_ADMIN", "CAP_SYSLOG",
	"CAP_WAKE_ALARM", "CAP_BLOCK_SUSPEND", "CAP_AUDIT_READ", "CAP_PERFMON", "CAP_BPF", "CAP_CHECKPOINT_RESTORE"}
