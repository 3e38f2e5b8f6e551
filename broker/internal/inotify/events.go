//go:build linux

package inotify

import (
	"encoding/binary"
	"iter"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// reporting are the file systems that report every change of a file, whoever makes it: their magic numbers.
var reporting = [...]int64{unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.TMPFS_MAGIC,
	unix.F2FS_SUPER_MAGIC, unix.OVERLAYFS_SUPER_MAGIC}

// Reports says whether a file system (statfs(2)) is one of those that report every change.
func Reports(magic int64) bool { return slices.Contains(reporting[:], magic) }

// Event is one event of inotify(7).
type Event struct {
	Watch        int32
	Mask, Cookie uint32
	Name         string // "" for the watched object itself
	End          int    // where it ends in what was read, in bytes
}

const headSize = 16 // struct inotify_event without its name

// Room is how many bytes are read at once.
const Room = 64 << 10

// Events are those in what one read(2) of an instance returned.
func Events(read []byte) iter.Seq[Event] {
	return func(yield func(Event) bool) {
		for at := 0; at+headSize <= len(read); {
			b := read[at:]
			size := headSize + int(binary.NativeEndian.Uint32(b[12:]))
			if size > len(b) {
				return
			}
			name, _, _ := strings.Cut(string(b[headSize:size]), "\x00")
			at += size
			if !yield(Event{int32(binary.NativeEndian.Uint32(b)), binary.NativeEndian.Uint32(b[4:]),
				binary.NativeEndian.Uint32(b[8:]), name, at}) {
				return
			}
		}
	}
}
