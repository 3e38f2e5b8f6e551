package program

import (
	"os"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// system says whether a program's path begins where only root installs programs. Those are known by their base name.
func system(file string) bool {
	for _, top := range [...]string{"/usr/", "/bin/", "/sbin/", "/lib/", "/lib64/"} {
		if strings.HasPrefix(file, top) {
			return true
		}
	}
	return false
}

// foreign ends what Of says of a file that has the path of one of the system's and is none: in a container's own tree,
// below an overlay, replaced. The kernel says " (deleted)" in this way.
const foreign = " (not the host's)"

// Of is the file that a process runs, as questions, records and JSON have it, "" if that cannot be read: what
// /proc/PID/exe leads to, never a name that the program chose. A path of the system's is said as such only if it is the
// host's own file and nobody but root could have put it there.
func Of(pid int) string {
	link := "/proc/" + strconv.Itoa(pid) + "/exe"
	file, err := os.Readlink(link)
	if err != nil || !system(file) {
		return file
	}
	var host, runs unix.Stat_t
	p, err := Roots(file)
	if err == nil {
		err = unix.Stat(p.file, &host)
	}
	if err == nil {
		err = unix.Stat(link, &runs)
	}
	if err != nil || host.Dev != runs.Dev || host.Ino != runs.Ino {
		return strings.TrimSuffix(file, " (deleted)") + foreign
	}
	return file
}

// Name is how people are told of a file that Of returned: by its base name if it is one of the system's, else by the
// whole path, so that no program passes for another by its name.
func Name(exe string) string {
	if system(exe) && !strings.HasSuffix(exe, foreign) {
		return path.Base(exe)
	}
	return exe
}

// Links says what a process executes and where it works; empty if it is gone.
func Links(pid int) (exe, cwd string) {
	cwd, _ = os.Readlink("/proc/" + strconv.Itoa(pid) + "/cwd")
	return Of(pid), cwd
}
