//go:build linux

package gatefs

import (
	"bytes"
	"encoding/gob"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/gate/grants"
)

// insideEnv marks the process that lives in the sandbox's namespaces: it mounts, plays the agent and runs what tests
// send.
const insideEnv = "GATEFS_TEST_INSIDE"

// order is one thing to do inside; result is what came of it.
type order struct {
	ID   int
	Kind string // sh, go, graft, revoke, populate
	Arg  string
	Dir  string
	Host string
	Mode grants.Mode
}

type result struct {
	ID    int
	Out   string
	Code  int
	Errno syscall.Errno
}

// insideMain serves orders from descriptor 3 until it is closed. Its mount point is in the environment.
func insideMain() int {
	mnt := os.Getenv(insideEnv)
	conn := os.NewFile(3, "orders")
	agent := make(chan func(), 1)
	tid := make(chan int)
	go func() {
		runtime.LockOSThread()
		tid <- unix.Gettid()
		for f := range agent {
			f()
		}
	}()
	if err := insideMount(mnt, int(conn.Fd()), <-tid); err != nil {
		fmt.Fprintln(os.Stderr, "mounting inside:", err)
		return 1
	}
	_ = unix.SetNonblock(3, false)
	var mu sync.Mutex
	enc, dec := gob.NewEncoder(conn), gob.NewDecoder(conn)
	for {
		var o order
		if err := dec.Decode(&o); err != nil {
			return 0
		}
		reply := func(r result) {
			r.ID = o.ID
			mu.Lock()
			defer mu.Unlock()
			_ = enc.Encode(r)
		}
		switch o.Kind {
		case "sh", "go":
			go func() { reply(o.run(mnt)) }()
		default:
			agent <- func() { reply(o.carryOut(mnt)) }
		}
	}
}

func (o order) run(mnt string) result {
	if o.Kind == "go" {
		f := insideFuncs()[o.Arg]
		if f == nil {
			return result{Out: "no such function", Code: 1}
		}
		if err := f(filepath.Join(mnt, o.Dir)); err != nil {
			return result{Out: err.Error(), Code: 1}
		}
		return result{}
	}
	runtime.LockOSThread() // the thread dies with the goroutine
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return result{Out: err.Error(), Code: 1}
	}
	c := exec.Command("/bin/sh", "-c", o.Arg)
	c.Dir = filepath.Join(mnt, o.Dir)
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	err := c.Run()
	if err != nil && c.ProcessState == nil {
		return result{Out: err.Error(), Code: 127}
	}
	return result{Out: out.String(), Code: c.ProcessState.ExitCode()}
}

func (o order) carryOut(mnt string) result {
	var err error
	switch at := filepath.Join(mnt, o.Arg); o.Kind {
	case "graft":
		err = graft(o.Host, at, o.Mode)
	case "revoke":
		err = unix.Unmount(at, unix.MNT_DETACH)
	case "populate":
		var fd int
		if fd, err = unix.Open(at, unix.O_RDONLY|unix.O_DIRECTORY, 0); err == nil {
			buf := make([]byte, 16384)
			for {
				n, e := unix.Getdents(fd, buf)
				if n <= 0 {
					err = e
					break
				}
			}
			unix.Close(fd)
		}
	}
	var e syscall.Errno
	if err != nil && !errors.As(err, &e) {
		e = unix.EIO
	}
	return result{Errno: e}
}

func graft(host, at string, m grants.Mode) error {
	fd, err := unix.OpenTree(unix.AT_FDCWD, host, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE|
		unix.AT_SYMLINK_NOFOLLOW)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if m == grants.RO {
		a := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV}
		if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &a); err != nil {
			return err
		}
	}
	return unix.MoveMount(fd, "", unix.AT_FDCWD, at, unix.MOVE_MOUNT_F_EMPTY_PATH)
}

// insideMount mounts the file system and hands its descriptor out; the tid tells the server who the agent is.
func insideMount(mnt string, conn, tid int) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("making / private: %w", err)
	}
	dev, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("opening /dev/fuse: %w", err)
	}
	fs, err := unix.Fsopen("fuse", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return fmt.Errorf("fsopen: %w", err)
	}
	opts := [][2]string{{"source", "sbx"}, {"fd", fmt.Sprint(dev)}, {"rootmode", "40755"},
		{"user_id", fmt.Sprint(os.Getuid())}, {"group_id", fmt.Sprint(os.Getgid())}}
	for _, o := range opts {
		if err := unix.FsconfigSetString(fs, o[0], o[1]); err != nil {
			return fmt.Errorf("fsconfig %s: %w", o[0], err)
		}
	}
	if err := unix.FsconfigSetFlag(fs, "allow_other"); err != nil {
		return fmt.Errorf("fsconfig allow_other: %w", err)
	}
	if err := unix.FsconfigCreate(fs); err != nil {
		return fmt.Errorf("fsconfig create: %w", err)
	}
	m, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV)
	if err != nil {
		return fmt.Errorf("fsmount: %w", err)
	}
	if err := unix.MoveMount(m, "", unix.AT_FDCWD, mnt, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return fmt.Errorf("move_mount: %w", err)
	}
	unix.Close(fs)
	unix.Close(m)
	if err := unix.Sendmsg(conn, []byte(fmt.Sprintf("%10d", tid)), unix.UnixRights(dev), nil, 0); err != nil {
		return fmt.Errorf("sending the descriptor: %w", err)
	}
	return unix.Close(dev)
}
