package audit

import (
	"bytes"
	"fmt"

	"golang.org/x/sys/unix"
)

// shared marks the first record of a log that many processes write, which nobody seals.
const shared = "shared"

// Join opens the log SID.jsonl, which processes write in turn, and waits for its turn. Who comes first begins it. Leave
// gives others theirs.
func Join(dir, sid string, opts Options) (*Writer, error) {
	w, err := newWriter(dir, sid, opts)
	if err != nil {
		return nil, err
	}
	if err = w.join(); err == nil && w.seq == 0 {
		start := opts.Start
		start.Detail = append(start.Detail[:len(start.Detail):len(start.Detail)], KV{shared, "true"})
		err = w.begin(start)
	}
	if err != nil {
		w.release()
		return nil, err
	}
	return w, nil
}

// Leave releases the log without a seal.
func (w *Writer) Leave() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.release()
	w.broken = fmt.Errorf("writing audit log %s: %w", w.path, ErrClosed)
}

// join opens the file and goes on where it ends.
func (w *Writer) join() error {
	const flags = unix.O_RDWR | unix.O_APPEND | unix.O_CREAT | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_CLOEXEC
	fd, err := unix.Openat(w.dir, w.name, flags, 0o600)
	if err != nil {
		return fmt.Errorf("opening audit log %s: %w", w.path, err)
	}
	w.fd = fd
	var st unix.Stat_t
	if err = lock(fd); err == nil {
		err = unix.Fstat(fd, &st)
	}
	if err == nil {
		w.dev, w.ino, w.size = uint64(st.Dev), st.Ino, st.Size
		err = w.intact() // who had its turn may have removed it
	}
	if err != nil || st.Size == 0 {
		return err
	}
	last, err := lastLine(fd, st.Size)
	if err != nil {
		return fmt.Errorf("reading audit log %s: %w", w.path, err)
	}
	e, err := DecodeLine(last)
	w.seq, w.written, w.prev = e.Seq, e.Seq, e.Hash
	return err
}

// lastLine is the last line of a file of that size, without its newline.
func lastLine(fd int, size int64) ([]byte, error) {
	for room := int64(4 << 10); ; room = MaxLine + 1 {
		b := make([]byte, min(room, size))
		if n, err := unix.Pread(fd, b, size-int64(len(b))); err != nil || n < len(b) {
			return nil, fmt.Errorf("its end: %d bytes: %w", n, err)
		}
		line, whole := bytes.CutSuffix(b, []byte("\n"))
		i := bytes.LastIndexByte(line, '\n')
		switch {
		case !whole:
			return nil, fmt.Errorf("its last line is torn")
		case i >= 0 || int64(len(b)) == size:
			return line[i+1:], nil
		case room > MaxLine:
			return nil, fmt.Errorf("its last line is longer than %d bytes", MaxLine)
		}
	}
}

// lock waits until the file is this process's alone.
func lock(fd int) error {
	for {
		if err := unix.Flock(fd, unix.LOCK_EX); err != unix.EINTR {
			return err
		}
	}
}
