package host

import (
	"os"
	"path"
	"strconv"

	"golang.org/x/sys/unix"
)

// WithState is env with an XDG_STATE_HOME that can be written, where neither that variable nor the home names one: in a
// pod with a root file system that is read-only, under a uid without a home, in a sandbox. Then it is sbx-UID in the
// first of /tmp, /var/tmp and /dev/shm in which this user has such a directory for itself, which is made. env stays as
// it is where there is none.
func WithState(env []string) []string {
	if h := Lookup(env, "XDG_STATE_HOME"); path.IsAbs(h) || holdsState(home(env, uint32(os.Getuid())), listenerTaken()) {
		return env
	}
	for _, own := range Spare() {
		if privateDir(own) {
			return append(env[:len(env):len(env)], "XDG_STATE_HOME="+own)
		}
	}
	return env
}

// Spare are the places that WithState takes.
func Spare() [3]string {
	name := "/sbx-" + strconv.Itoa(os.Getuid())
	return [...]string{"/tmp" + name, "/var/tmp" + name, "/dev/shm" + name}
}

// holdsState says whether the user's folder for states is there and can be written, or can be made. In a sandbox, where
// somebody is asked who may say no, only making it tells.
func holdsState(home string, sandbox bool) bool {
	if home == "" {
		return false
	}
	dir := path.Join(home, ".local/state/sbx")
	if sandbox && os.MkdirAll(dir, 0o700) != nil {
		return false
	}
	for ; ; dir = path.Dir(dir) {
		if err := unix.Access(dir, unix.W_OK|unix.X_OK); err != unix.ENOENT || dir == home {
			return err == nil
		}
	}
}

// privateDir makes a directory that its owner alone can enter, or finds it. Anybody can make one of that name in a
// directory like /tmp first, or a link: that one is not taken.
func privateDir(dir string) bool {
	if err := unix.Mkdir(dir, 0o700); err != nil && err != unix.EEXIST {
		return false
	}
	var st unix.Stat_t
	return unix.Lstat(dir, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR && st.Mode&0o077 == 0 &&
		int(st.Uid) == os.Geteuid() && unix.Access(dir, unix.W_OK|unix.X_OK) == nil
}
