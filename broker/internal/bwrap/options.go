//go:build linux

package bwrap

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// Version is the version of bubblewrap whose options these are.
const Version = "0.11.0"

// option is one row of the table of options. Reading a line and the help follow from it.
type option struct {
	name string
	args string // what follows the name; "" for nothing
	help string
	take func(p *parser, v []string) error
	one  bool // of a missing argument it says "one argument", not "an argument"
}

// options returns the table.
func options() []option {
	return slices.Concat(general(), namespaces(), environment(), mounts(), files(), control())
}

func general() []option {
	return []option{
		{name: "--help", help: "print this text"},
		{name: "--version", help: "print the version of bubblewrap that is spoken here"},
		{name: "--args", args: "FD", help: "read more arguments, separated by NUL bytes, from FD", take: (*parser).args},
		{name: "--argv0", args: "VALUE", help: "what the program is told to be called", one: true, take: (*parser).argv0},
		{name: "--level-prefix", help: "begin each message with its level, as in <3>", take: set(func(r *request) *bool {
			return &r.level
		})},
	}
}

func namespaces() []option {
	return []option{
		{name: "--unshare-all", help: "make every namespace new that can be", take: (*parser).unshareAll},
		{name: "--share-net", help: "keep the network of the caller after --unshare-all", take: (*parser).shareNet},
		{name: "--unshare-user", help: "make a user namespace (always made for who is not root)",
			take: set(func(r *request) *bool { return &r.user })},
		{name: "--unshare-user-try", help: "make a user namespace if that is possible",
			take: set(func(r *request) *bool { return &r.userTry })},
		{name: "--unshare-ipc", help: "make an IPC namespace", take: set(func(r *request) *bool { return &r.ipc })},
		{name: "--unshare-pid", help: "make a PID namespace", take: set(func(r *request) *bool { return &r.pid })},
		{name: "--unshare-net", help: "make a network namespace", take: set(func(r *request) *bool { return &r.net })},
		{name: "--unshare-uts", help: "make a UTS namespace", take: set(func(r *request) *bool { return &r.uts })},
		{name: "--unshare-cgroup", help: "make a cgroup namespace", take: set(func(r *request) *bool { return &r.cgroup })},
		{name: "--unshare-cgroup-try", help: "make a cgroup namespace if that is possible",
			take: set(func(r *request) *bool { return &r.cgroupTry })},
		{name: "--userns", args: "FD", help: "enter this user namespace", take: number(func(r *request) *int {
			return &r.userns
		})},
		{name: "--userns2", args: "FD", help: "enter this user namespace after the set-up",
			take: number(func(r *request) *int { return &r.userns2 })},
		{name: "--disable-userns", help: "let no further user namespace be made inside",
			take: set(func(r *request) *bool { return &r.noUserNS })},
		{name: "--assert-userns-disabled", help: "fail if a further user namespace can be made inside",
			take: set(func(r *request) *bool { return &r.checkNoUserNS })},
		{name: "--pidns", args: "FD", help: "enter this PID namespace", take: number(func(r *request) *int {
			return &r.pidns
		})},
		{name: "--uid", args: "UID", help: "the user id inside", take: id("uid", func(r *request) *int { return &r.uid })},
		{name: "--gid", args: "GID", help: "the group id inside", take: id("gid", func(r *request) *int { return &r.gid })},
		{name: "--hostname", args: "NAME", help: "the host name inside (with --unshare-uts)", take: (*parser).hostname},
		{name: "--chdir", args: "DIR", help: "the directory to start in", one: true, take: (*parser).chdir},
	}
}

func environment() []option {
	return []option{
		{name: "--clearenv", help: "start from an empty environment", take: (*parser).clearenv},
		{name: "--setenv", args: "VAR VALUE", help: "set a variable", take: (*parser).setenv},
		{name: "--unsetenv", args: "VAR", help: "unset a variable", take: (*parser).unsetenv},
		{name: "--lock-file", args: "DEST", help: "hold a lock on DEST while the sandbox stands", take: (*parser).lockFile},
		{name: "--sync-fd", args: "FD", help: "keep FD open while the sandbox stands", take: number(func(r *request) *int {
			return &r.sync
		})},
	}
}

func mounts() []option {
	return []option{
		{name: "--bind", args: "SRC DEST", help: "show SRC of the host at DEST", take: bind(bindRW)},
		{name: "--bind-try", args: "SRC DEST", help: "the same, if SRC exists", take: bind(bindRW)},
		{name: "--dev-bind", args: "SRC DEST", help: "the same, with devices that work", take: bind(bindDev)},
		{name: "--dev-bind-try", args: "SRC DEST", help: "the same, if SRC exists", take: bind(bindDev)},
		{name: "--ro-bind", args: "SRC DEST", help: "show SRC of the host at DEST, read-only", take: bind(bindRO)},
		{name: "--ro-bind-try", args: "SRC DEST", help: "the same, if SRC exists", take: bind(bindRO)},
		{name: "--bind-fd", args: "FD DEST", help: "show what is open as FD at DEST", take: bindFD(bindRW)},
		{name: "--ro-bind-fd", args: "FD DEST", help: "the same, read-only", take: bindFD(bindRO)},
		{name: "--remount-ro", args: "DEST", help: "make the mount at DEST read-only, but none below it", one: true,
			take: place(remount)},
		{name: "--overlay-src", args: "SRC", help: "a lower layer of the overlay that follows", take: (*parser).overlaySrc},
		{name: "--overlay", args: "RWSRC WORKDIR DEST", help: "an overlay that is written to RWSRC", take: (*parser).overlay},
		{name: "--tmp-overlay", args: "DEST", help: "an overlay whose changes are gone at the end",
			take: (*parser).tmpOverlay},
		{name: "--ro-overlay", args: "DEST", help: "an overlay that cannot be written", take: (*parser).roOverlay},
		{name: "--exec-label", args: "LABEL", help: "an SELinux label (not supported here)", take: (*parser).label},
		{name: "--file-label", args: "LABEL", help: "an SELinux label (not supported here)", take: (*parser).label},
	}
}

func files() []option {
	return []option{
		{name: "--proc", args: "DEST", help: "a proc file system", take: place(proc)},
		{name: "--dev", args: "DEST", help: "a new /dev", take: (*parser).dev},
		{name: "--tmpfs", args: "DEST", help: "a new tmpfs", take: (*parser).tmpfs},
		{name: "--mqueue", args: "DEST", help: "a file system of message queues", take: place(mqueue)},
		{name: "--dir", args: "DEST", help: "a directory", take: (*parser).dir},
		{name: "--file", args: "FD DEST", help: "a file with what FD holds", take: file(fileCopy, 0o666)},
		{name: "--bind-data", args: "FD DEST", help: "the same, as a mount", take: file(fileRW, 0o600)},
		{name: "--ro-bind-data", args: "FD DEST", help: "the same, read-only", take: file(fileRO, 0o600)},
		{name: "--symlink", args: "SRC DEST", help: "a symbolic link at DEST to SRC", take: (*parser).symlink},
	}
}

func control() []option {
	return []option{
		{name: "--seccomp", args: "FD", help: "a filter of system calls to load", take: (*parser).seccomp},
		{name: "--add-seccomp-fd", args: "FD", help: "one more filter of system calls to load", take: (*parser).addSeccomp},
		{name: "--block-fd", args: "FD", help: "wait for a byte from FD before the program starts",
			take: number(func(r *request) *int { return &r.block })},
		{name: "--userns-block-fd", args: "FD", help: "wait for a byte from FD, when somebody has mapped the ids",
			take: number(func(r *request) *int { return &r.usernsBlock })},
		{name: "--info-fd", args: "FD", help: "write about the sandbox to FD", take: number(func(r *request) *int {
			return &r.info
		})},
		{name: "--json-status-fd", args: "FD", help: "write about the sandbox and its end to FD",
			take: number(func(r *request) *int { return &r.status })},
		{name: "--new-session", help: "make a terminal session", take: set(func(r *request) *bool { return &r.session })},
		{name: "--die-with-parent", help: "end everything when the caller ends", take: set(func(r *request) *bool {
			return &r.dies
		})},
		{name: "--as-pid-1", help: "start the program as process 1", take: set(func(r *request) *bool { return &r.pid1 })},
		{name: "--cap-add", args: "CAP", help: "let the program keep a capability", take: capability(true)},
		{name: "--cap-drop", args: "CAP", help: "let the program not keep a capability", take: capability(false)},
		{name: "--perms", args: "OCTAL", help: "the mode of what the next option makes", take: (*parser).setPerms},
		{name: "--size", args: "BYTES", help: "the size of the next tmpfs", take: (*parser).setSize},
		{name: "--chmod", args: "OCTAL PATH", help: "change the mode of PATH", take: (*parser).chmod},
	}
}

// usageLine is the first line of the help, which callers know an error in the use by.
func usageLine(name string) string {
	return "usage: " + name + " [OPTIONS...] [--] COMMAND [ARGS...]\n"
}

func help(w io.Writer, name string) {
	var b strings.Builder
	b.WriteString(usageLine(name) + "\n")
	for _, o := range options() {
		fmt.Fprintf(&b, "    %-28s %s\n", strings.TrimSpace(o.name+" "+o.args), o.help)
	}
	_, _ = io.WriteString(w, b.String())
}
