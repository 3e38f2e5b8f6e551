//go:build linux

package gatefs

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// insideFuncs are the tests that a shell cannot express. Each runs in the sandbox with the directory it is about.
func insideFuncs() map[string]func(dir string) error {
	return map[string]func(string) error{
		"calls": insideCalls, "mmap": insideMmap, "append": insideAppend, "exchange": insideExchange,
		"exchangeguard": insideExchangeGuard,
		"xattr":         insideXattr, "tmpfile": insideTmpfile, "devices": insideDevices, "locks": insideLocks,
		"unlinked": insideUnlinked,
		"sockets":  insideSockets, "manyfiles": insideManyFiles, "staleconfig": insideStaleConfig,
		"seeknoenv": insideSeekNoEnv,
		"oldfd":     insideOldFd, "opath": insideOPath, "hundred": insideHundred, "opens": insideOpens,
		"newfile":  insideNewFile,
		"enotconn": insideEnotconn, "crowd": insideCrowd, "mapped": insideMapped,
	}
}

func want(what string, got, errs error) error {
	if !errors.Is(got, errs) {
		return fmt.Errorf("%s: got %v, want %v", what, got, errs)
	}
	return nil
}

func insideCalls(dir string) error {
	p := filepath.Join(dir, "calls")
	f, err := os.OpenFile(p, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = os.OpenFile(p, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err := want("O_EXCL", err, unix.EEXIST); err != nil {
		return err
	}
	fd := int(f.Fd())
	if err := unix.Fallocate(fd, 0, 0, 1<<20); err != nil {
		return fmt.Errorf("fallocate: %w", err)
	}
	if err := unix.Ftruncate(fd, 0); err != nil {
		return err
	}
	if _, err := f.WriteAt([]byte("data"), 1<<20); err != nil {
		return err
	}
	if off, err := unix.Seek(fd, 0, unix.SEEK_DATA); err != nil || off == 0 {
		return fmt.Errorf("SEEK_DATA: %d %v", off, err)
	}
	g, err := os.Create(p + "2")
	if err != nil {
		return err
	}
	defer g.Close()
	from := int64(1 << 20)
	if n, err := unix.CopyFileRange(fd, &from, int(g.Fd()), nil, 4, 0); n != 4 || err != nil {
		return fmt.Errorf("copy_file_range: %d %v", n, err)
	}
	if err := errors.Join(f.Sync(), unix.Fdatasync(fd)); err != nil {
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); err != nil {
		return fmt.Errorf("syncing directory: %w", err)
	}
	if b, err := os.ReadFile(p + "2"); string(b) != "data" {
		return fmt.Errorf("copied %q %v", b, err)
	}
	if err := want("access W on a file", unix.Access(p, unix.W_OK), nil); err != nil {
		return err
	}
	if err := want("NOREPLACE", unix.Renameat2(unix.AT_FDCWD, p, unix.AT_FDCWD, p+"2", unix.RENAME_NOREPLACE),
		unix.EEXIST); err != nil {
		return err
	}
	l := p + ".l"
	if err := os.Symlink("nowhere", l); err != nil {
		return err
	}
	ts := []unix.Timespec{{Sec: 5}, {Sec: 6}}
	if err := unix.UtimesNanoAt(unix.AT_FDCWD, l, ts, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return fmt.Errorf("times of a symlink: %w", err)
	}
	if err := os.Link(l, l+"2"); err != nil {
		return fmt.Errorf("linking a symlink: %w", err)
	}
	return errors.Join(os.Remove(p), os.Remove(p+"2"), os.Remove(l), os.Remove(l+"2"))
}

// insideMmap: what could be written is not mapped shared; a private mapping and one of what is only read are to be had.
func insideMmap(dir string) error {
	p := filepath.Join(dir, "mapped")
	if err := os.WriteFile(p, bytes.Repeat([]byte("x"), 4096), 0o644); err != nil {
		return err
	}
	f, err := os.OpenFile(p, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := unix.Mmap(int(f.Fd()), 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != unix.ENODEV {
		return fmt.Errorf("mapping shared what can be written: %v", err)
	}
	r, err := os.Open(p)
	if err != nil {
		return err
	}
	defer r.Close()
	for _, m := range []struct{ fd, how int }{{int(f.Fd()), unix.MAP_PRIVATE}, {int(r.Fd()), unix.MAP_SHARED}} {
		b, err := unix.Mmap(m.fd, 0, 4096, unix.PROT_READ, m.how)
		if err != nil || b[4095] != 'x' {
			return fmt.Errorf("mapping with %d: %v", m.how, err)
		}
		if err := unix.Munmap(b); err != nil {
			return err
		}
	}
	return os.Remove(p)
}

func insideAppend(dir string) error {
	p := filepath.Join(dir, "log")
	errs := make(chan error, 4)
	for range 4 {
		go func() {
			f, err := os.OpenFile(p, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
			for i := 0; err == nil && i < 50; i++ {
				_, err = f.WriteString("0123456\n")
			}
			f.Close()
			errs <- err
		}()
	}
	for range 4 {
		if err := <-errs; err != nil {
			return err
		}
	}
	b, err := os.ReadFile(p)
	if n := strings.Count(string(b), "0123456\n"); n != 200 || len(b) != 1600 {
		return fmt.Errorf("%d lines in %d bytes, %v", n, len(b), err)
	}
	return os.Remove(p)
}

func exchange(dir, a, b string) error {
	return unix.Renameat2(unix.AT_FDCWD, filepath.Join(dir, a), unix.AT_FDCWD, filepath.Join(dir, b), unix.RENAME_EXCHANGE)
}

func insideExchange(dir string) error {
	for _, n := range []string{"xa", "xb"} {
		if err := os.WriteFile(filepath.Join(dir, n), []byte(n), 0o644); err != nil {
			return err
		}
	}
	if err := exchange(dir, "xa", "xb"); err != nil {
		return err
	}
	b, err := os.ReadFile(filepath.Join(dir, "xa"))
	if string(b) != "xb" {
		return fmt.Errorf("xa holds %q, %v", b, err)
	}
	return errors.Join(os.Remove(filepath.Join(dir, "xa")), os.Remove(filepath.Join(dir, "xb")))
}

func insideExchangeGuard(dir string) error {
	if err := os.MkdirAll(filepath.Join(dir, "alt"), 0o755); err != nil {
		return err
	}
	defer os.RemoveAll(filepath.Join(dir, "alt"))
	return errors.Join(
		want("exchange onto .vscode", exchange(dir, "alt", ".vscode"), unix.EROFS),
		want("exchange from .vscode", exchange(dir, ".vscode", "alt"), unix.EROFS),
		want("exchange .git", exchange(dir, ".git", "alt"), unix.EBUSY),
		want("exchange onto .git", exchange(dir, "alt", ".git"), unix.EACCES),
		want("exchange .git/config", exchange(dir, "main.go", ".git/config"), unix.EROFS),
		want("exchange .env", exchange(dir, "main.go", ".env"), unix.ENOENT),
		want("whiteout", unix.Renameat2(unix.AT_FDCWD, filepath.Join(dir, "main.go"), unix.AT_FDCWD, filepath.Join(dir,
			"m2"), unix.RENAME_WHITEOUT), unix.EINVAL),
	)
}

func insideXattr(dir string) error {
	p := filepath.Join(dir, "main.go")
	if err := unix.Setxattr(p, "user.k", []byte("v"), 0); errors.Is(err, unix.EOPNOTSUPP) {
		return nil // the host file system has none
	} else if err != nil {
		return err
	}
	b := make([]byte, 256)
	n, err := unix.Getxattr(p, "user.k", b)
	if err != nil || string(b[:n]) != "v" {
		return fmt.Errorf("getxattr: %q %v", b[:max(n, 0)], err)
	}
	n, err = unix.Listxattr(p, b)
	if err != nil || string(b[:n]) != "user.k\x00" {
		return fmt.Errorf("listxattr: %q %v", b[:max(n, 0)], err)
	}
	return errors.Join(
		unix.Removexattr(p, "user.k"),
		want("user.overlay", unix.Setxattr(p, "user.overlay.opaque", []byte("y"), 0), unix.EOPNOTSUPP),
		want("guarded", unix.Setxattr(filepath.Join(dir, ".mcp.json"), "user.k", []byte("v"), 0), unix.EROFS),
	)
}

func insideTmpfile(dir string) error {
	_, err := unix.Open(dir, unix.O_TMPFILE|unix.O_RDWR, 0o600)
	return want("O_TMPFILE", err, unix.EOPNOTSUPP)
}

func insideDevices(dir string) error {
	p := filepath.Join(dir, "dv")
	return errors.Join(
		want("char", unix.Mknod(p, unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3))), unix.EPERM),
		want("block", unix.Mknod(p, unix.S_IFBLK|0o600, int(unix.Mkdev(8, 0))), unix.EPERM),
		want("whiteout", unix.Mknod(p, unix.S_IFCHR|0o600, 0), unix.EPERM),
	)
}

func insideLocks(dir string) error {
	p := filepath.Join(dir, "main.go")
	a, err := os.OpenFile(p, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer a.Close()
	b, err := os.OpenFile(p, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer b.Close()
	if err := unix.Flock(int(a.Fd()), unix.LOCK_EX); err != nil {
		return err
	}
	if err := want("second flock", unix.Flock(int(b.Fd()), unix.LOCK_EX|unix.LOCK_NB), unix.EWOULDBLOCK); err != nil {
		return err
	}
	lk := unix.Flock_t{Type: unix.F_WRLCK, Len: 10}
	return unix.FcntlFlock(a.Fd(), unix.F_OFD_SETLK, &lk)
}

func insideUnlinked(dir string) error {
	p := filepath.Join(dir, "gone")
	f, err := os.Create(p)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := os.Remove(p); err != nil {
		return err
	}
	if _, err := f.WriteString("still here"); err != nil {
		return err
	}
	if err := errors.Join(f.Truncate(5), f.Chmod(0o600)); err != nil {
		return err
	}
	st, err := f.Stat()
	if err != nil || st.Size() != 5 || st.Sys().(*syscall.Stat_t).Nlink != 0 {
		return fmt.Errorf("unlinked file: %v %v", st, err)
	}
	return nil
}

func insideSockets(dir string) error {
	p := filepath.Join(dir, "s")
	l, err := net.Listen("unix", p)
	if err != nil {
		return err
	}
	defer l.Close()
	c, err := net.Dial("unix", p)
	if err != nil {
		return err
	}
	return c.Close()
}

func insideManyFiles(dir string) error {
	d := filepath.Join(dir, "many")
	if err := os.Mkdir(d, 0o755); err != nil {
		return err
	}
	seen := make(map[string]bool)
	for i := range 700 {
		if err := os.WriteFile(filepath.Join(d, fmt.Sprintf("file-with-a-long-name-%d", i)), nil, 0o644); err != nil {
			return err
		}
	}
	es, err := os.ReadDir(d)
	for _, e := range es {
		seen[e.Name()] = true
	}
	if len(seen) != 700 {
		return fmt.Errorf("%d names listed, %v", len(seen), err)
	}
	return os.RemoveAll(d)
}
