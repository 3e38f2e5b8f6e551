//go:build linux

package machine

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/plan"
	"sbx.example/sbx/shared/rtnl"
)

// newRoot is where a guest's root is put together before it is the root.
const newRoot = "/root"

// initMain is process 1 of a guest.
func initMain(console *os.File) int {
	channel, err := findChannel()
	if err != nil { // nobody hears it but who reads the console
		fmt.Fprintln(console, "sbx:", err)
		halt()
		return 1
	}
	w := &writer{out: channel}
	if err = w.write(kindReady, 0); err == nil {
		err = comeUp(channel)
	}
	if err != nil {
		_ = w.write(kindFailed, 0, []byte(err.Error()))
		time.Sleep(time.Second) // until that is read, and the machine is ended from outside
		halt()
		return 1
	}
	serveGuest(channel, w)
	halt()
	return 0
}

// halt ends the machine, by starting it again: QEMU is told not to.
func halt() {
	unix.Sync()
	_ = unix.Reboot(unix.LINUX_REBOOT_CMD_RESTART)
}

// findChannel loads the drivers and opens the channel to the host.
func findChannel() (*os.File, error) {
	for _, m := range [][3]string{{"proc", "/proc", "proc"}, {"sys", "/sys", "sysfs"}, {"dev", "/dev", "devtmpfs"}} {
		if err := unix.Mount(m[0], m[1], m[2], 0, ""); err != nil && err != unix.EBUSY {
			return nil, fmt.Errorf("mounting %s: %w", m[1], err)
		}
	}
	files, err := filepath.Glob(modulesName + "/*")
	if err != nil {
		return nil, err
	}
	slices.Sort(files)
	for _, f := range files {
		_, name, _ := strings.Cut(path.Base(f), "-")
		if err := load(f); err != nil {
			return nil, fmt.Errorf("loading the driver %s: %w", name, err)
		}
	}
	for range patience { // a device is found at once, or by a thread of the kernel's
		if ports, _ := filepath.Glob("/dev/vport*p1"); len(ports) == 1 {
			return os.OpenFile(ports[0], unix.O_RDWR|unix.O_CLOEXEC, 0)
		}
		time.Sleep(pause)
	}
	return nil, errors.New("the kernel has found no virtio port: it lacks virtio_console, or virtio_pci or virtio_mmio")
}

const (
	patience = 500
	pause    = 10 * time.Millisecond
)

func load(file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	if err = unix.FinitModule(int(f.Fd()), "", 0); err == unix.EEXIST {
		return nil
	}
	return err
}

// comeUp makes a root of what the host serves, and what the host says of it.
func comeUp(channel *os.File) error {
	f, err := readFrame(channel, maxText)
	if err != nil || f.kind != kindConfig {
		return fmt.Errorf("hearing from the host: kind %d, %w", f.kind, err)
	}
	var c Config
	if err = json.Unmarshal(f.body, &c); err != nil {
		return err
	}
	now := unix.NsecToTimespec(c.Time)
	if err = unix.ClockSettime(unix.CLOCK_REALTIME, &now); err != nil {
		return fmt.Errorf("setting the time: %w", err)
	}
	if err = unix.Sethostname([]byte(c.Hostname)); err != nil {
		return fmt.Errorf("setting the host name: %w", err)
	}
	if err = mountRoot(); err != nil {
		return err
	}
	if err = ownPlaces(); err != nil {
		return err
	}
	for _, p := range c.Places {
		if err = p.mount(); err != nil {
			return fmt.Errorf("making %s: %w", p.Path, err)
		}
	}
	if err = network(c.Net); err != nil {
		return err
	}
	if err = unix.Chdir(newRoot); err != nil {
		return err
	}
	if err = unix.Mount(".", "/", "", unix.MS_MOVE, ""); err != nil {
		return fmt.Errorf("making it the root: %w", err)
	}
	if err = unix.Chroot("."); err != nil {
		return err
	}
	return unix.Chdir("/")
}

// mountRoot mounts what QEMU serves. Nothing is kept of a file but while it is mapped: the host's files change, too.
// From Linux 6.4 on that takes directio, which older ones pass over.
func mountRoot() (err error) {
	for range patience {
		err = unix.Mount(name9P, newRoot, "9p", unix.MS_NOSUID|unix.MS_NODEV,
			"trans=virtio,version=9p2000.L,cache=mmap,directio,access=any,msize=262144")
		if err != unix.ENOENT && err != unix.ENODEV {
			break
		}
		time.Sleep(pause)
	}
	if err != nil {
		return fmt.Errorf("mounting what the host serves (9p): %w", err)
	}
	return nil
}

// ownPlaces makes what is the kernel's own, as the sandbox has it.
func ownPlaces() error {
	const plain = unix.MS_NOSUID | unix.MS_NOEXEC
	for _, m := range []struct {
		at, kind string
		flags    uintptr
		data     string
	}{
		{"/proc", "proc", plain | unix.MS_NODEV, "hidepid=2"},
		{"/dev", "tmpfs", plain, "mode=0755,size=64k"},
		{"/dev/pts", "devpts", plain, "newinstance,ptmxmode=0666,mode=0600"},
		{"/sys", "tmpfs", plain | unix.MS_NODEV, "mode=0755,size=64k"},
	} {
		if err := os.MkdirAll(newRoot+m.at, 0o755); err != nil {
			return err
		}
		if err := unix.Mount("sbx", newRoot+m.at, m.kind, m.flags, m.data); err != nil {
			return fmt.Errorf("mounting %s: %w", m.at, err)
		}
	}
	for _, d := range [][2]uint32{{1, 3}, {1, 5}, {1, 7}, {1, 8}, {1, 9}, {5, 0}} {
		name := map[[2]uint32]string{{1, 3}: "null", {1, 5}: "zero", {1, 7}: "full", {1, 8}: "random", {1, 9}: "urandom",
			{5, 0}: "tty"}[d]
		at := newRoot + "/dev/" + name
		if err := unix.Mknod(at, unix.S_IFCHR|0o666, int(unix.Mkdev(d[0], d[1]))); err != nil {
			return fmt.Errorf("making /dev/%s: %w", name, err)
		}
		if err := unix.Chmod(at, 0o666); err != nil {
			return err
		}
	}
	for _, l := range [][2]string{{"ptmx", "pts/ptmx"}, {"fd", "/proc/self/fd"}, {"stdin", "/proc/self/fd/0"},
		{"stdout", "/proc/self/fd/1"}, {"stderr", "/proc/self/fd/2"}} {
		if err := unix.Symlink(l[1], newRoot+"/dev/"+l[0]); err != nil {
			return err
		}
	}
	const cpu = "/sys/devices/system/cpu"
	if err := os.MkdirAll(newRoot+cpu, 0o755); err != nil {
		return err
	}
	if err := unix.Mount(cpu, newRoot+cpu, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("showing %s: %w", cpu, err)
	}
	return unix.Mount("", newRoot+cpu, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY|plain|unix.MS_NODEV, "")
}

// mount makes a place, and shows in it what is mounted there on the host.
func (p Place) mount() error {
	trees := make([]int, len(p.Served))
	for i, s := range p.Served {
		fd, err := unix.OpenTree(unix.AT_FDCWD, newRoot+string(s), unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
		if err != nil {
			return fmt.Errorf("taking %s: %w", s, err)
		}
		defer unix.Close(fd)
		trees[i] = fd
	}
	at := newRoot + string(p.Path)
	if err := os.MkdirAll(at, 0o755); err != nil {
		return err
	}
	flags := uintptr(unix.MS_NOSUID | unix.MS_NODEV)
	if p.NoExec {
		flags |= unix.MS_NOEXEC
	}
	var st unix.Stat_t
	if err := unix.Stat(at, &st); err != nil {
		return err
	}
	if err := unix.Mount("tmpfs", at, "tmpfs", flags, fmt.Sprintf("size=%d,mode=%o,uid=%d,gid=%d", p.Size, p.Mode&0o7777,
		st.Uid, st.Gid)); err != nil {
		return err
	}
	for _, e := range p.Entries {
		if err := e.make(st.Uid, st.Gid); err != nil {
			return fmt.Errorf("making %s: %w", e.Path, err)
		}
	}
	for i, s := range p.Served {
		if err := unix.MoveMount(trees[i], "", unix.AT_FDCWD, newRoot+string(s), unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
			return fmt.Errorf("showing %s: %w", s, err)
		}
	}
	return nil
}

func (e Entry) make(uid, gid uint32) (err error) {
	at := newRoot + string(e.Path)
	switch e.Mode & unix.S_IFMT {
	case unix.S_IFLNK:
		err = unix.Symlink(string(e.Target), at)
	case unix.S_IFDIR:
		err = unix.Mkdir(at, 0o700)
	default:
		err = unix.Mknod(at, unix.S_IFREG|0o600, 0)
	}
	if err == nil {
		err = unix.Lchown(at, int(uid), int(gid))
	}
	if err == nil && e.Mode&unix.S_IFMT != unix.S_IFLNK {
		err = unix.Chmod(at, e.Mode&0o7777)
	}
	return err
}

// network brings lo up, and the way out where there is one.
func network(out bool) error {
	c, err := rtnl.Open(unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer unix.Close(c.FD)
	if err = c.Up(1); err != nil {
		return fmt.Errorf("bringing lo up: %w", err)
	}
	if !out {
		return nil
	}
	devices, err := filepath.Glob("/sys/bus/virtio/devices/*/net/*")
	if err != nil || len(devices) != 1 {
		return fmt.Errorf("the kernel has found %d network devices instead of 1: it may lack virtio_net", len(devices))
	}
	i, err := c.Index(path.Base(devices[0]))
	if err != nil {
		return err
	}
	bits := netip.MustParsePrefix(guestNet).Bits()
	if err = c.Address(i, netip.PrefixFrom(netip.MustParseAddr(guestAddress), bits)); err != nil {
		return fmt.Errorf("setting the address: %w", err)
	}
	if err = c.Up(i); err != nil {
		return err
	}
	if err = c.Default(i, netip.MustParseAddr(guestGateway)); err != nil {
		return fmt.Errorf("setting the route: %w", err)
	}
	// Where the sandbox's resolver and its proxy listen is its own loopback, which is QEMU's: from the guest they are
	// beyond the device, and the kernel takes them for nobody's otherwise.
	local := "/proc/sys/net/ipv4/conf/" + path.Base(devices[0]) + "/route_localnet"
	if err = os.WriteFile(local, []byte("1"), 0); err != nil {
		return fmt.Errorf("letting loopback addresses out: %w", err)
	}
	for _, a := range outside() {
		if err = c.Do([]rtnl.Message{wayOut(a, i)}, nil); err != nil {
			return fmt.Errorf("setting the route to %s: %w", a, err)
		}
	}
	return nil
}

// outside are addresses of the sandbox's loopback at which programs find what sbx serves: see package network.
func outside() []netip.Addr {
	return []netip.Addr{netip.MustParseAddr(plan.Resolver), netip.MustParseAddr(plan.Served)}
}

// wayOut is a route to one address by way of QEMU, in the table in which the kernel looks first (rtnetlink(7)).
func wayOut(to netip.Addr, device int) rtnl.Message {
	dst, via, from := to.As4(), netip.MustParseAddr(guestGateway).As4(), netip.MustParseAddr(guestAddress).As4()
	body := []byte{unix.AF_INET, 32, 0, 0, unix.RT_TABLE_LOCAL, unix.RTPROT_BOOT, unix.RT_SCOPE_UNIVERSE, unix.RTN_UNICAST,
		0, 0, 0, 0}
	for _, a := range [][]byte{rtnl.Attr(unix.RTA_DST, dst[:]), rtnl.Attr(unix.RTA_GATEWAY, via[:]),
		rtnl.Attr(unix.RTA_OIF, binary.NativeEndian.AppendUint32(nil, uint32(device))),
		rtnl.Attr(unix.RTA_PREFSRC, from[:])} {
		body = append(body, a...)
	}
	return rtnl.Message{Kind: unix.RTM_NEWROUTE, Flags: unix.NLM_F_CREATE | unix.NLM_F_EXCL | unix.NLM_F_ACK, Body: body}
}
