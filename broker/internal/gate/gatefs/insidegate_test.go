//go:build linux

package gatefs

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/gate/grants"
)

// insideStaleConfig keeps the lock file open over the rename and writes to it afterwards. (It cannot be mapped:
// insideMmap.)
func insideStaleConfig(dir string) error {
	lock := filepath.Join(dir, ".git/config.lock")
	cfg := filepath.Join(dir, ".git/config")
	b, err := os.ReadFile(cfg)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(lock, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Write(b); err != nil {
		return err
	}
	if err := os.Link(lock, filepath.Join(dir, "second")); err != nil {
		return err
	}
	if err := os.Rename(lock, cfg); err != nil {
		return err
	}
	_, _ = f.WriteString("[core]\n\tfsmonitor = /tmp/evil\n")
	_ = os.WriteFile(filepath.Join(dir, "second"), []byte("[core]\n\tfsmonitor = /tmp/evil\n"), 0o644)
	now, err := os.ReadFile(cfg)
	if err != nil || !bytes.Equal(now, b) {
		return fmt.Errorf("config became %q, %v", now, err)
	}
	return os.Remove(filepath.Join(dir, "second"))
}

// insideMapped maps a file that asks, and has it looked up again by who is refused it.
func insideMapped(dir string) error {
	f, err := os.Open(filepath.Join(dir, "f"))
	if err != nil {
		return err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return err
	}
	m, err := unix.Mmap(int(f.Fd()), 0, int(st.Size()), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return err
	}
	defer unix.Munmap(m)
	var p [2]int
	if err := unix.Pipe(p[:]); err != nil {
		return err
	}
	defer func() { unix.Close(p[0]); unix.Close(p[1]) }()
	for i := range 2 { // the kernel copies it: a page that is not there is EFAULT
		if n, err := unix.Write(p[1], m); n != len(m) {
			return fmt.Errorf("look %d: what is mapped is gone: %w", i, err)
		}
		_ = unix.Access(f.Name(), unix.F_OK)
		if other, err := os.Open(f.Name()); err == nil {
			other.Close()
			return errors.New("it was opened again")
		}
	}
	return nil
}

func insideSeekNoEnv(dir string) error {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	for n := 0; ; n++ {
		if b, err := os.ReadFile(filepath.Join(dir, ".env")); !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("round %d: read %q, %v", n, b, err)
		}
		if _, err := os.Lstat(filepath.Join(dir, ".env.t")); !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("round %d: .env.t: %v", n, err)
		}
		es, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		for _, e := range es {
			if e.Name() == ".env" || e.Name() == ".env.t" {
				return fmt.Errorf("round %d: %s is listed", n, e.Name())
			}
			if e.Name() == "stop" {
				return nil
			}
		}
	}
}

// insideCrowd makes, renames, links, lists and removes from many threads at once.
func insideCrowd(dir string) error {
	errs := make(chan error, 8)
	for w := range 8 {
		go func() {
			d := filepath.Join(dir, fmt.Sprintf("crowd%d", w%4))
			var all error
			for i := range 40 {
				f := filepath.Join(d, fmt.Sprintf("f%d-%d", w, i))
				if err := os.MkdirAll(d, 0o755); err != nil && !errors.Is(err, os.ErrExist) { // a race lost on any file system
					all = errors.Join(all, err)
				}
				if err := os.WriteFile(f, []byte(f), 0o644); err != nil {
					continue // the neighbour has just removed the directory
				}
				if b, err := os.ReadFile(f); err == nil && string(b) != f {
					all = errors.Join(all, fmt.Errorf("%s holds %q", f, b))
				}
				_ = os.Link(f, f+".l")
				_ = os.Rename(f, f+".r")
				_, _ = os.ReadDir(d)
				_ = os.Rename(d, d+"x")
				_ = os.RemoveAll(d + "x")
			}
			errs <- all
		}()
	}
	var all error
	for range 8 {
		all = errors.Join(all, <-errs)
	}
	for w := range 4 {
		d := filepath.Join(dir, fmt.Sprintf("crowd%d", w))
		all = errors.Join(all, os.RemoveAll(d), os.RemoveAll(d+"x"))
	}
	return all
}

// insideOldFd opens dir before anything is granted and looks through that descriptor later.
func insideOldFd(dir string) error {
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if _, err := os.ReadDir(dir); err != nil { // asks, is granted and mounted
		return err
	}
	var f int
	for range 3 { // the first tries may say ESTALE, as a repeated walk would have helped
		f, err = unix.Openat(fd, "f", unix.O_RDONLY, 0)
		if err == nil {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("through the old descriptor: %w", err)
	}
	defer unix.Close(f)
	b := make([]byte, 16)
	n, err := unix.Read(f, b)
	if err != nil || string(b[:n]) != "granted" {
		return fmt.Errorf("read %q, %v", b[:max(n, 0)], err)
	}
	_, err = unix.Openat(fd, "f", unix.O_WRONLY, 0)
	return want("writing through the old descriptor", err, unix.EROFS)
}

// insideOPath: an O_PATH descriptor of what is denied opens nothing.
func insideOPath(p string) error {
	fd, err := unix.Open(p, unix.O_PATH, 0)
	if err != nil {
		return want("O_PATH", err, unix.EACCES)
	}
	defer unix.Close(fd)
	time.Sleep(grants.DenyHold + 50*time.Millisecond) // so that the denial above is not what is met: it ends by the clock
	_, err = os.ReadFile(fmt.Sprintf("/proc/self/fd/%d", fd))
	return want("reopening", err, unix.EACCES)
}

func insideHundred(p string) error {
	errs := make(chan error, 100)
	for range 100 {
		go func() {
			b, err := os.ReadFile(p)
			if err == nil && string(b) != "granted" {
				err = fmt.Errorf("read %q", b)
			}
			errs <- err
		}()
	}
	var all error
	for range 100 {
		all = errors.Join(all, <-errs)
	}
	return all
}

func insideEnotconn(dir string) error {
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		_, err := os.Stat(filepath.Join(dir, "x"))
		if errors.Is(err, unix.ENOTCONN) {
			return nil
		}
	}
	_, err := os.Stat(filepath.Join(dir, "x"))
	return want("stat after the server's death", err, unix.ENOTCONN)
}

// insideOpens opens and looks at a file ten thousand times.
func insideOpens(dir string) error {
	for range 10000 {
		f, err := os.Open(filepath.Join(dir, "f"))
		if err != nil {
			return err
		}
		f.Close()
		if _, err := os.Stat(filepath.Join(dir, "f")); err != nil {
			return err
		}
	}
	return nil
}

// insideNewFile makes a file and changes it through its descriptor.
func insideNewFile(dir string) error {
	f, err := os.OpenFile(filepath.Join(dir, "other"), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.WriteString("hello"); err != nil {
		return err
	}
	if err := f.Truncate(2); err != nil {
		return err
	}
	b := make([]byte, 9)
	if n, err := f.ReadAt(b, 0); string(b[:n]) != "he" {
		return fmt.Errorf("read %q, %v", b[:n], err)
	}
	return f.Sync()
}
