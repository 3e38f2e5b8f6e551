package audit

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// ErrVanished says that the log is no longer the file that was opened: removed, renamed, cut or appended to by another.
var ErrVanished = errors.New("audit log was removed, replaced or changed by another process")

// ErrClosed says that the log was sealed.
var ErrClosed = errors.New("audit log is closed")

// Options of a Writer.
type Options struct {
	MaxBytes int64             // start a new part before a file grows beyond this; 0 never
	Syslog   func(line []byte) // called after each stored record; must not keep line
	PlanHash string            // carried by the start record
	Start    Event             // other members of the start record
}

// Writer appends to one session's log. It is safe for concurrent use.
type Writer struct {
	mu     sync.Mutex
	opts   Options
	now    func() time.Time
	sid    string
	path   string
	name   string
	dir    int
	fd     int
	dev    uint64
	ino    uint64
	size   int64
	seq    uint64
	prev   string
	part   int
	ended  bool // the current part says so at its end
	broken error

	flushed sync.Cond // of mu: a sync has ended
	syncing bool
	soon    bool   // a sync is due
	held    []byte // lines of Later that are not written
	line    []byte // room for the next one
	written uint64 // last record that is in the file
	synced  uint64 // last record that is on disk
	unnamed bool   // the current part's name is not on disk yet
	full    bool   // there was no room for the last write
	missing int    // records that there was no room for, since the last one that says so

	often Often
}

// Create makes dir (0700) if needed and a new log SID.jsonl in it; an existing log is an error.
// The first record has kind start.
func Create(dir, sid string, opts Options) (*Writer, error) {
	w, err := newWriter(dir, sid, opts)
	if err != nil {
		return nil, err
	}
	if err = w.open(); err == nil {
		err = w.begin(opts.Start)
	}
	if err != nil {
		w.release()
		return nil, err
	}
	return w, nil
}

// newWriter opens the folder, which it makes if there is none.
func newWriter(dir, sid string, opts Options) (*Writer, error) {
	if err := checkSID(sid); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("creating audit folder: %w", err)
	}
	dfd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("opening audit folder %s: %w", dir, err)
	}
	w := &Writer{opts: opts, now: time.Now, sid: sid, name: sid + ".jsonl", dir: dfd, fd: -1, prev: Genesis}
	w.flushed.L = &w.mu
	w.path = strings.TrimRight(dir, "/") + "/" + w.name
	if err := checkDir(dfd, dir); err != nil {
		w.release()
		return nil, err
	}
	return w, nil
}

// begin writes the first record. It is on disk before the first decision that must be: one sync is for the whole file.
func (w *Writer) begin(start Event) error {
	start.Kind, start.PlanHash = KindStart, w.opts.PlanHash
	_, err := w.Note(start)
	return err
}

// checkDir refuses a folder in which somebody else could replace the log.
func checkDir(fd int, dir string) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return fmt.Errorf("checking audit folder %s: %w", dir, err)
	}
	if int(st.Uid) != unix.Geteuid() {
		return fmt.Errorf("checking audit folder %s: owned by uid %d, not by you; choose another folder", dir, st.Uid)
	}
	if st.Mode&0o022 != 0 {
		return fmt.Errorf("checking audit folder %s: writable by others; run chmod go-w on it", dir)
	}
	return nil
}

func (w *Writer) open() error {
	const flags = unix.O_WRONLY | unix.O_APPEND | unix.O_CREAT | unix.O_EXCL | unix.O_NOFOLLOW | unix.O_CLOEXEC
	fd, err := unix.Openat(w.dir, w.name, flags, 0o600)
	if err != nil {
		return fmt.Errorf("creating audit log %s: %w", w.path, err)
	}
	var st unix.Stat_t
	if err = unix.Fstat(fd, &st); err == nil {
		// The lock says that the writer is alive. Who only looks whether it is may have the file for a moment.
		err = lock(fd)
	}
	if err != nil {
		unix.Close(fd)
		return fmt.Errorf("creating audit log %s: %w", w.path, err)
	}
	w.fd, w.dev, w.ino, w.size, w.unnamed = fd, uint64(st.Dev), st.Ino, 0, true
	return nil
}

// Append stores one record and returns it as stored; kinds that decide something are on disk then, with everything
// before them. Records that come at the same time share one sync. After an error that leaves the log in doubt every
// later call returns that error, so a caller that grants only on success fails closed. An event that cannot be encoded
// is refused without breaking the log. One that there is no room for is counted as well (see put).
func (w *Writer) Append(e Event) (Event, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	e, err := w.put(e, false)
	if err == nil && durable(e.Kind) {
		err = w.sync(e.Seq)
	}
	return e, err
}

// Note is Append for a record that need not outlive a power cut: one that follows from what is on disk already.
func (w *Writer) Note(e Event) (Event, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.put(e, false)
}

// sync waits until a record that is written is on disk. w.mu is held, and given up while the disk works.
func (w *Writer) sync(seq uint64) error {
	for w.synced < seq {
		if w.broken != nil {
			return w.broken
		}
		if w.syncing {
			w.flushed.Wait()
			continue
		}
		// A part that is full may be closed meanwhile; it was synced before.
		fd, err := unix.FcntlInt(uintptr(w.fd), unix.F_DUPFD_CLOEXEC, 3)
		if err != nil {
			return w.fail(err)
		}
		w.syncing = true
		last, name := w.written, w.unnamed
		w.mu.Unlock()
		err = syncData(fd)
		if err == nil && name {
			err = unix.Fsync(w.dir)
		}
		unix.Close(fd)
		w.mu.Lock()
		w.syncing = false
		if err != nil {
			err = w.fail(err)
		} else {
			w.synced, w.unnamed = max(w.synced, last), w.unnamed && !name
		}
		w.flushed.Broadcast()
		if err != nil {
			return err
		}
	}
	return nil
}

// put adds a record of a caller's. Where records are missing that there was no room for, one that says how many comes
// first. w.mu is held.
func (w *Writer) put(e Event, hold bool) (Event, error) {
	if w.broken != nil {
		return Event{}, w.broken
	}
	var err error
	if w.missing > 0 {
		if _, err = w.add(missed(w.missing), false); err == nil {
			w.missing = 0
		}
	}
	if err == nil {
		e, err = w.add(e, hold && !w.full)
	}
	if errors.As(err, new(noRoom)) {
		w.missing++
	}
	return e, err
}

// missed is the record of records that are missing.
func missed(n int) Event {
	return Event{Kind: KindError, UID: os.Getuid(), Op: "record",
		Reason: "there was no room for the records before this one", Detail: []KV{{"missing", strconv.Itoa(n)}}}
}

// noRoom is the error of a write that has left the log as it was, for want of room.
type noRoom struct{ error }

func (e noRoom) Unwrap() error { return e.error }

// isFull says whether a file system or a quota has no room.
func isFull(err error) bool { return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) }

// add chains a record and writes it, or keeps it for the next write.
func (w *Writer) add(e Event, hold bool) (Event, error) {
	if e.Time.IsZero() {
		e.Time = w.now()
	}
	// The monotonic reading and the zone would not survive the file.
	e.Time = e.Time.Round(0).UTC()
	e.Session = w.sid
	e.clip()
	if err := e.check(); err != nil {
		return Event{}, err
	}
	e.Seq, e.Prev = w.seq+1, w.prev
	line := e.seal(w.line[:0])
	if len(line) > MaxLine {
		return Event{}, fmt.Errorf("writing audit record: %d bytes are more than the limit of %d", len(line), MaxLine)
	}
	if w.opts.MaxBytes > 0 && w.size > 0 && w.size+int64(len(w.held)+len(line)) > w.opts.MaxBytes &&
		e.Kind != KindRotate && e.Kind != KindSeal {
		if err := w.rotate(); err != nil {
			return Event{}, w.fail(err)
		}
		e.Seq, e.Prev = w.seq+1, w.prev
		line = e.seal(w.line[:0])
	}
	if w.line = line; cap(line) > maxKept {
		w.line = nil
	}
	if hold {
		w.held = append(w.held, line...)
	} else if err := w.store(line, e.Kind == KindRotate); err != nil {
		return Event{}, w.fail(err)
	} else {
		w.written = e.Seq
	}
	w.seq, w.prev = e.Seq, e.Hash
	return e, nil
}

// durable lists what must be on disk before it takes effect.
func durable(kind string) bool {
	switch kind {
	case KindStart, KindAllow, KindDeny, KindGrant, KindRevoke, KindRotate, KindSeal:
		return true
	}
	return false
}

func (w *Writer) store(line []byte, sync bool) error {
	if err := w.intact(); err != nil {
		return err
	}
	held := len(w.held) > 0
	if held {
		line = append(w.held, line...)
	}
	n, err := writeOnce(w.fd, line)
	if err == nil && n != len(line) {
		// A short write to a regular file means that the space ran out in the middle.
		err = unix.ENOSPC
	}
	if err != nil {
		whole := n == 0 || unix.Ftruncate(w.fd, w.size) == nil
		if w.full = isFull(err); w.full && whole {
			err = noRoom{err}
		}
		return err
	}
	if held {
		if w.held = line[:0]; cap(line) > maxKept {
			w.held = nil
		}
	}
	w.size, w.full = w.size+int64(n), false
	if sync {
		if err := syncData(w.fd); err != nil {
			return err
		}
	}
	if w.opts.Syslog != nil {
		for l := range bytes.Lines(line) {
			w.opts.Syslog(l)
		}
	}
	return nil
}

// maxKept bounds the room that is kept for the next lines.
const maxKept = 16 << 10

func writeOnce(fd int, b []byte) (int, error) {
	for {
		n, err := unix.Write(fd, b)
		if err != unix.EINTR {
			return max(n, 0), err
		}
	}
}

// intact compares the descriptor with what was written through it, and the name with the descriptor.
func (w *Writer) intact() error {
	var st unix.Stat_t
	if err := unix.Fstat(w.fd, &st); err != nil {
		return err
	}
	switch {
	case st.Nlink == 0:
		return fmt.Errorf("%w: it has no name any more", ErrVanished)
	case st.Size < w.size:
		return fmt.Errorf("%w: it shrank from %d to %d bytes", ErrVanished, w.size, st.Size)
	case st.Size > w.size:
		return fmt.Errorf("%w: it grew from %d to %d bytes", ErrVanished, w.size, st.Size)
	}
	var named unix.Stat_t
	if err := unix.Fstatat(w.dir, w.name, &named, unix.AT_SYMLINK_NOFOLLOW); err != nil || named.Ino != w.ino ||
		uint64(named.Dev) != w.dev {
		return fmt.Errorf("%w: its name leads elsewhere", ErrVanished)
	}
	return nil
}

// fail words an error. Nothing more is written after it, unless the log is as it was and only room is wanting.
func (w *Writer) fail(err error) error {
	err = fmt.Errorf("writing audit log %s: %w", w.path, err)
	if !errors.As(err, new(noRoom)) {
		w.broken = err
	}
	return err
}

// Err is what broke the log, or nil.
func (w *Writer) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.broken
}

// Path names the current part.
func (w *Writer) Path() string { return w.path }

// Close writes the seal, so that a cut tail can be told from a running session, and releases the file. It waits for the
// disk, except for a log in which nothing was decided.
func (w *Writer) Close() error {
	w.often.Flush(w.Note)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fd < 0 {
		return nil
	}
	err := w.broken
	if err == nil {
		var e Event
		if e, err = w.put(Event{Kind: KindSeal}, false); err == nil && (w.soon || w.synced > 0) {
			err = w.sync(e.Seq)
		}
	}
	for w.syncing {
		w.flushed.Wait()
	}
	w.release()
	w.broken = fmt.Errorf("writing audit log %s: %w", w.path, ErrClosed)
	return err
}

func (w *Writer) release() {
	if w.fd >= 0 {
		unix.Close(w.fd)
	}
	if w.dir >= 0 {
		unix.Close(w.dir)
	}
	w.fd, w.dir = -1, -1
}
