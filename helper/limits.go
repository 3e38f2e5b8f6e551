//go:build linux

package main

import (
	"errors"
	"math"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/shared/plan"
	"sbx.example/sbx/shared/wire"
)

// org is what /etc/sbx/helper.toml says, in which the host's administrator writes what is allowed. It is read with the
// caller's
// authority like every file, so it must be readable for all; whoever may execute the helper may use it where there is
// none.
type org struct {
	uids, gids []uint32 // who may; nil is everybody who may execute the helper
	hostNet    bool
	veth       bool
	vethRange  netip.Prefix
	forwarding bool  // may be switched on for the whole host
	tmpfs      int64 // largest size of one tmpfs, bytes
	// Of the control groups that are prepared, each a file and what is written to it; nil: none are prepared.
	ceilings []string
}

// limits checks p against what this host's administrator and its /proc allow.
func limits(p *plan.Setup, c caller) {
	o, err := readOrg()
	must(err, wire.OrgFile)
	want(o.admits(c), wire.OrgRefuses, -1)
	want(o.hostNet || p.Namespaces.Net, wire.OrgRefuses, -2)
	whole := procIsWhole()
	for i := range p.Mounts {
		m := &p.Mounts[i]
		want(m.Kind != plan.Tmpfs || m.Size <= o.tmpfs, wire.OrgRefuses, int64(i))
		want(m.Kind != plan.Proc || whole, wire.NotPermitted, int64(i))
	}
}

// admits says whether c may use the helper.
func (o org) admits(c caller) bool {
	return o.uids == nil && o.gids == nil || slices.Contains(o.uids, c.uid) || slices.Contains(o.gids, c.gid) ||
		slices.ContainsFunc(c.groups, func(g int) bool { return slices.Contains(o.gids, uint32(g)) })
}

var errOrg = errors.New("not a file to rely on")

// readOrg reads a file of root's that nobody else can write, and whose directory nobody else can either.
func readOrg() (org, error) {
	o := org{tmpfs: math.MaxInt64, hostNet: true, veth: true, vethRange: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 213, 0, 0}), 18)}
	var fd int
	dir, err := openRoots(unix.AT_FDCWD, "/etc/sbx", unix.S_IFDIR)
	if err == nil {
		fd, err = openRoots(dir, "helper.toml", unix.S_IFREG)
		unix.Close(dir)
	}
	if err == unix.ENOENT {
		return o, nil
	}
	if err != nil {
		return o, err
	}
	text, err := readAll(fd)
	if err != nil {
		return o, err
	}
	return o, o.parse(text)
}

// maxText is the most that is read of a file, and of a line of one that may be longer; more is an error.
const maxText = 4 << 20

// eachLine reads a file of at most so many bytes, and closes it. Package os would start the runtime's poller for it.
func eachLine(fd, most int, each func(line string)) error {
	defer unix.Close(fd)
	left := ""
	for part := make([]byte, 64<<10); most > 0 && len(left) < maxText; {
		n, err := unix.Read(fd, part)
		if n <= 0 && err != unix.EINTR {
			each(left)
			return err
		}
		n = max(n, 0)
		most, left = most-n, left+string(part[:n])
		for line, rest, ok := strings.Cut(left, "\n"); ok; line, rest, ok = strings.Cut(left, "\n") {
			each(line + "\n")
			left = rest
		}
	}
	return unix.EFBIG
}

func readAll(fd int) (string, error) {
	var text strings.Builder
	err := eachLine(fd, maxText, func(line string) { text.WriteString(line) })
	return text.String(), err
}

func readWhole(name string) (string, error) {
	fd, err := unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	return readAll(fd)
}

// openRoots opens what must be root's, without following a link.
func openRoots(at int, name string, kind uint32) (int, error) {
	fd, err := unix.Openat2(at, name, &unix.OpenHow{Flags: unix.O_RDONLY | unix.O_CLOEXEC | unix.O_NONBLOCK,
		Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS})
	if err != nil {
		return -1, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Uid != 0 || st.Mode&0o022 != 0 || st.Mode&unix.S_IFMT != kind {
		unix.Close(fd)
		return -1, errOrg
	}
	return fd, nil
}

// parse reads "key = value" lines, the part of TOML that the file needs. What it does not know is an
// error: an administrator's limit must not be lost by a slip of the pen.
func (o *org) parse(text string) (err error) {
	var seen []string
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#") // no value has one
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		key, value, _ := strings.Cut(line, "=")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		if slices.Contains(seen, key) { // which of the two was meant?
			return errOrg
		}
		seen = append(seen, key)
		switch key {
		case "allow_uids":
			o.uids, err = ids(value)
		case "allow_gids":
			o.gids, err = ids(value)
		case "host_network":
			o.hostNet, err = strconv.ParseBool(value)
		case "veth":
			o.veth, err = strconv.ParseBool(value)
		case "forwarding":
			o.forwarding, err = strconv.ParseBool(value)
		case "veth_range":
			o.vethRange, err = netip.ParsePrefix(strings.Trim(value, `"`))
			if err == nil && (!o.vethRange.Addr().Is4() || o.vethRange.Bits() < 8 || o.vethRange.Bits() > 30) {
				err = errOrg
			}
		case "max_tmpfs":
			o.tmpfs, err = strconv.ParseInt(value, 10, 64)
			if o.tmpfs < 1 {
				err = errOrg
			}
		case "cgroups":
			value, err = strconv.Unquote(value)
			o.ceilings = strings.Split(value, ",")
		default:
			err = errOrg
		}
		if err != nil {
			return errOrg
		}
	}
	return nil
}

// ids reads a list such as [1000, 1001]; it is never nil.
func ids(value string) ([]uint32, error) {
	out := []uint32{}
	inner, ok := strings.CutPrefix(value, "[")
	inner, ok2 := strings.CutSuffix(inner, "]")
	if !ok || !ok2 {
		return nil, errOrg
	}
	for field := range strings.SplitSeq(inner, ",") {
		if field = strings.TrimSpace(field); field == "" {
			continue
		}
		v, err := strconv.ParseUint(field, 10, 32)
		if err != nil {
			return nil, err
		}
		out = append(out, uint32(v))
	}
	return out, nil
}

// procIsWhole says whether the caller sees an unmasked, writable /proc. A kernel with user namespaces
// gives nobody a new proc who does not (mount_too_revealing in fs/namespace.c); without one, root could,
// and in a container with a masked /proc that would show what the mask hides. Users' mounts have lines there as well:
// there may be any number, and of whence they are nothing may be said.
func procIsWhole() bool {
	whole, masked := false, false
	fd, err := unix.Open("/proc/self/mountinfo", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	must(err, wire.NotPermitted)
	must(eachLine(fd, math.MaxInt, func(line string) {
		// proc(5): id parent dev root point options … - type source super
		f := strings.Split(strings.TrimSuffix(line, "\n"), " ")
		sep := slices.Index(f, "-")
		switch {
		case sep < 6 || len(f) < sep+4:
			masked = masked || line != ""
		case f[4] == "/proc":
			whole = f[3] == "/" && f[sep+1] == "proc" && !slices.Contains(strings.Split(f[5], ","), "ro") && !slices.Contains(strings.Split(f[sep+3], ","), "ro")
		case strings.HasPrefix(f[4], "/proc/") && !emptyByNature(f[4]):
			masked = true
		}
	}), wire.NotPermitted)
	return whole && !masked
}

// emptyByNature are directories of proc that hold nothing: a mount on them hides nothing.
func emptyByNature(p string) bool {
	return p == "/proc/sys/fs/binfmt_misc" || p == "/proc/fs/nfsd" || p == "/proc/openprom"
}
