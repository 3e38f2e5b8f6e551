//go:build linux

package resources

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/host"
)

// Host is where groups are looked for; Root is "" or "/" but in tests.
type Host struct {
	Root string
	UID  int
}

// Parent is a group in which this user may make others.
type Parent struct {
	Dir         string   // absolute, below the host's root
	Controllers []string // that its children have
	How         string   // delegated or prepared, for people
}

// Has says whether groups below p have the controller.
func (p Parent) Has(controller string) bool { return slices.Contains(p.Controllers, controller) }

// ErrNone says that no group can be had; the error around it says why.
var ErrNone = errors.New("no control group can be had")

func none(format string, a ...any) error {
	return fmt.Errorf("%w: %s", ErrNone, fmt.Sprintf(format, a...))
}

func (h Host) path(p string) string { return filepath.Join("/", h.Root, p) }

// place is where systemd and everybody after it mount the unified hierarchy. The mount table would say so too, but
// reading it takes as long as a tenth of a start.
const place = "/sys/fs/cgroup"

// mount makes sure that the unified hierarchy has the controllers.
func (h Host) mount() (string, error) {
	has, err := words(h.path(place + "/cgroup.controllers"))
	switch {
	case err == nil && slices.ContainsFunc(wanted(), func(w string) bool { return slices.Contains(has, w) }):
		return place, nil
	case err == nil:
		return "", none("the host's controllers are all in version 1 hierarchies")
	}
	if _, err := os.Stat(h.path(place + "/unified")); err == nil {
		return "", none("the host's controllers are all in version 1 hierarchies")
	}
	return "", none("no version 2 hierarchy is mounted at %s", place)
}

// Unified says whether version 2 groups have controllers here, so that whoever may could make some.
func (h Host) Unified() bool {
	_, err := h.mount()
	return err == nil
}

// own is this process's group, as a path below the mount.
func (h Host) own() (string, error) {
	b, err := os.ReadFile(h.path("/proc/self/cgroup"))
	if err != nil {
		return "", none("/proc/self/cgroup cannot be read")
	}
	for line := range strings.Lines(string(b)) {
		if p, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "0::"); ok {
			if strings.Contains(p, "..") || strings.HasSuffix(p, " (deleted)") {
				return "", none("this process is outside of what it can see of them")
			}
			return p, nil
		}
	}
	return "", none("this process is in no version 2 group")
}

// Find looks for a group that this process may make others in, and move its children to: the nearest one above its
// own that was delegated to the user, or that sbx-helper prepared and has put this process below. What systemd or the
// helper would have to be asked for is not looked for here, because that takes as long as starting a sandbox.
func (h Host) Find() (Parent, error) {
	mnt, err := h.mount()
	if err != nil {
		return Parent{}, err
	}
	own, err := h.own()
	if err != nil {
		return Parent{}, err
	}
	why := "no group above this process's own is writable by it"
	for p := own; ; p = filepath.Dir(p) {
		dir := h.path(filepath.Join(mnt, p))
		// A group with processes cannot share out its controllers, but for the machine's root, which is no container's: there
		// pids could be had, and would make all groups below such that take threads alone (cgroups(7), "domain invalid").
		if p != own || p == "/" && !host.Exists(dir+"/cgroup.type") {
			c, err := h.usable(dir)
			if err == nil {
				how := "delegated"
				if strings.HasPrefix(p, fmt.Sprintf("/sbx/%d/", h.UID)) {
					how = "prepared"
				}
				return Parent{Dir: dir, Controllers: c, How: how}, nil
			}
			if !errors.Is(err, unix.EACCES) && !errors.Is(err, unix.EROFS) {
				why = err.Error()
			}
		}
		if p == "/" || p == "." {
			break
		}
	}
	return Parent{}, none("%s", why)
}

// Apart is this process's own group where the user may make others in it, whether it has controllers or not: for who
// must not be in it. ok is false where its files are not the user's either, or nobody can say.
func (h Host) Apart() (_ Parent, ok bool) {
	own, err := h.own()
	for _, mnt := range [...]string{place, place + "/unified"} { // the second beside hierarchies of version 1
		if dir := h.path(filepath.Join(mnt, own)); err == nil && writable(dir) == nil {
			return Parent{Dir: dir, How: "its own"}, true
		}
	}
	return Parent{}, false
}

// writable is nil for a group in which this process may make others, and move processes to.
func writable(dir string) error {
	for _, p := range [...]string{dir, dir + "/cgroup.procs"} {
		if err := unix.Faccessat(unix.AT_FDCWD, p, unix.W_OK, unix.AT_EACCESS); err != nil {
			return err
		}
	}
	return nil
}

// wanted are the controllers that are of use.
func wanted() []string { return []string{"memory", "pids", "cpu", "io"} }

// usable says which controllers the children of dir have, switching on those that can be.
func (h Host) usable(dir string) ([]string, error) {
	if err := writable(dir); err != nil {
		return nil, err
	}
	has, err := words(dir + "/cgroup.controllers")
	if err != nil {
		return nil, err
	}
	on, err := words(dir + "/cgroup.subtree_control")
	if err != nil {
		return nil, err
	}
	for _, c := range wanted() {
		if slices.Contains(has, c) && !slices.Contains(on, c) && write(dir+"/cgroup.subtree_control", "+"+c) == nil {
			on = append(on, c)
		}
	}
	on = slices.DeleteFunc(on, func(c string) bool { return !slices.Contains(wanted(), c) })
	if len(on) == 0 {
		return nil, fmt.Errorf("%s shares out no controller", dir)
	}
	return on, nil
}

func words(p string) ([]string, error) {
	b, err := host.ReadFile(p)
	return strings.Fields(string(b)), err
}

// write writes a value to a file of the group's that exists.
func write(p, value string) error {
	fd, err := unix.Open(p, unix.O_WRONLY|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	_, err = unix.Write(fd, []byte(value))
	return err
}
