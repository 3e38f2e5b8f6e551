//go:build linux

package changes

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/plan"
)

// lockedFile is the file, beside the layers of an ended session, that says which modes directories in them had that
// their owner could not read or enter. They have others since they were looked into, and these are what counts.
const lockedFile = "overlay/locked.jsonl"

// lockedDir is a line of it.
type lockedDir struct {
	Upper plan.Bytes `json:"upper"`
	Dir   plan.Bytes `json:"dir"`  // below Upper, "." for itself
	Mode  uint32     `json:"mode"` // permission bits
}

// locks are the directories of a session's layers that were locked, by layer and name.
type locks struct {
	f     *os.File // nil: nothing can be opened up
	modes map[string]map[string]uint32
}

// openLocks reads them. As long as they are open no other call opens directories up.
func openLocks(session string) *locks {
	k := &locks{modes: map[string]map[string]uint32{}}
	f, err := os.OpenFile(filepath.Join(session, lockedFile), os.O_RDWR|os.O_CREATE|os.O_APPEND|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return k
	}
	for err = unix.EINTR; err == unix.EINTR; {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX)
	}
	if err != nil {
		f.Close()
		return k
	}
	k.f = f
	for lines := bufio.NewReader(f); err == nil; {
		var line []byte
		line, err = lines.ReadBytes('\n')
		var d lockedDir
		if json.Unmarshal(line, &d) == nil {
			k.keep(d)
		}
	}
	return k
}

func (k *locks) keep(d lockedDir) {
	of := k.modes[string(d.Upper)]
	if of == nil {
		of = map[string]uint32{}
		k.modes[string(d.Upper)] = of
	}
	if _, ok := of[string(d.Dir)]; !ok {
		of[string(d.Dir)] = d.Mode
	}
}

func (k *locks) close() {
	if k.f != nil {
		k.f.Close()
	}
}

// opens opens a directory of the layer that is to be read and entered. One of the user's own whose mode keeps even its
// owner out gets another one, once its session has ended: nobody else has the layer then. What it had is written down
// before.
func (k *locks) opens(l *Layer, rel string, dir int, name string) (int, error) {
	fd, err := openReadable(dir, name)
	if err != unix.EACCES || k == nil || k.f == nil {
		return fd, err
	}
	p, err := pin(dir, name)
	if err != nil {
		return -1, err
	}
	defer unix.Close(p)
	var st unix.Stat_t
	if err := unix.Fstat(p, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFDIR || int(st.Uid) != unix.Geteuid() {
		return -1, errors.Join(unix.EACCES, err)
	}
	d := lockedDir{plan.Bytes(l.Upper), plan.Bytes(rel), st.Mode & 0o7777}
	b, err := json.Marshal(d)
	if err != nil {
		return -1, err
	}
	if _, err := k.f.Write(append(b, '\n')); err != nil {
		return -1, fmt.Errorf("noting its mode: %w", err)
	}
	k.keep(d)
	if err := unix.Chmod(fmt.Sprintf("/proc/self/fd/%d", p), d.Mode|0o500); err != nil {
		return -1, err
	}
	return openReadable(dir, name)
}

// top opens the directory of the layer itself.
func (k *locks) top(l *Layer) (int, error) {
	around, err := openRoot(path.Dir(l.Upper))
	if err != nil {
		return -1, err
	}
	defer unix.Close(around)
	return k.opens(l, ".", around, path.Base(l.Upper))
}

// seen puts the mode that the program saw into what is known of a directory of the layer.
func (k *locks) seen(l *Layer, rel string, st *unix.Stat_t) {
	if k == nil || st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return
	}
	if mode, ok := k.modes[l.Upper][rel]; ok {
		st.Mode = st.Mode&^0o7777 | mode
	}
}

// openReadable opens a directory in dir of which the names can be listed and looked at: EACCES if not both.
func openReadable(dir int, name string) (int, error) {
	fd, err := openSame(dir, name)
	if err != nil {
		return -1, err
	}
	if unix.Faccessat(fd, ".", unix.X_OK, unix.AT_EACCESS) == unix.EACCES {
		unix.Close(fd)
		return -1, unix.EACCES
	}
	return fd, nil
}
