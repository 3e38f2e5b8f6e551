package guard

import (
	"bytes"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"hash"
	"strconv"
)

// What git tracks with exactly the contents that a file has can be read from the repository's objects anyway, so hiding
// the file would only make git believe that it was deleted. The index alone proves nothing: the program can write it.
// That its entry is the hash of the contents does.

// MaxIndex bounds the index that is read, in bytes: about a million files.
const MaxIndex = 128 << 20

var errIndex = errors.New("not an index of git that is understood")

// GitIndex finds entries of .git/index (gitformat-index(5), versions 2 to 4). Want chooses among the names, as git
// spells them; what is found are the object ids in the index's length: 20 bytes, or 32 in a repository of SHA-256. An
// entry in a merge conflict, or one whose contents are not there yet (intent to add), is not found.
func GitIndex(index []byte, size int, want func(name []byte) bool) (map[string][]byte, error) {
	if size != sha1.Size && size != sha256.Size {
		return nil, errIndex
	}
	found := map[string][]byte{}
	_, err := eachEntry(index, size, func(e indexEntry, _ []byte) {
		if e.plain && want(e.name) {
			found[string(e.name)] = e.id
		}
	})
	if err != nil {
		return nil, err
	}
	return found, nil
}

// eachEntry calls each with the entries of an index whose ids have this length, and with what is left of it from there
// on. It returns what follows the entries, up to the checksum.
func eachEntry(index []byte, size int, each func(e indexEntry, from []byte)) ([]byte, error) {
	if len(index) < 12+size || string(index[:4]) != "DIRC" {
		return nil, errIndex
	}
	version, count := binary.BigEndian.Uint32(index[4:]), binary.BigEndian.Uint32(index[8:])
	if version < 2 || version > 4 {
		return nil, errIndex
	}
	rest := index[12 : len(index)-size]
	var name []byte
	for range count {
		e, err := readEntry(rest, size, version, name)
		if err != nil {
			return nil, err
		}
		each(e, rest)
		name, rest = e.name, rest[e.length:]
	}
	return rest, nil
}

// indexEntry is one entry; plain: of a regular file, merged, with contents; whole: the name is spelled without the one
// before it.
type indexEntry struct {
	id, name     []byte
	plain, whole bool
	length       int
}

const (
	statSize    = 40     // times, device, inode, mode, owner and size
	modeAt      = 24     // of the mode among them
	extendedBit = 0x4000 // of the flags, from version 3 on: two more bytes of flags
	stageBits   = 0x3000
	intentBit   = 0x2000 // of those two
	nameBits    = 0x0fff // of the flags: the length of the name; all of them: it ends with a zero byte
)

func readEntry(b []byte, size int, version uint32, last []byte) (e indexEntry, err error) {
	at := statSize + size
	if len(b) < at+2 {
		return e, errIndex
	}
	e.id = b[statSize:at]
	flags := binary.BigEndian.Uint16(b[at:])
	e.plain = binary.BigEndian.Uint32(b[modeAt:])&0o170000 == 0o100000 && flags&stageBits == 0
	at += 2
	if flags&extendedBit != 0 {
		if version < 3 || len(b) < at+2 {
			return e, errIndex
		}
		e.plain = e.plain && binary.BigEndian.Uint16(b[at:])&intentBit == 0
		at += 2
	}
	if version == 4 {
		strip, n := offsetVarint(b[at:])
		if n == 0 || strip > uint64(len(last)) {
			return e, errIndex
		}
		at += n
		end := bytes.IndexByte(b[at:], 0)
		if end < 0 {
			return e, errIndex
		}
		e.whole = int(strip) == len(last)
		e.name = append(last[:len(last)-int(strip)], b[at:at+end]...) // the buffer is this function's own in such an index
		e.length = at + end + 1
		return e, e.measured(flags)
	}
	end := bytes.IndexByte(b[at:], 0)
	if end < 0 {
		return e, errIndex
	}
	e.name, e.whole = b[at:at+end], true
	e.length = (at + end + 8) &^ 7 // one to eight zero bytes follow
	if e.length > len(b) {
		return e, errIndex
	}
	return e, e.measured(flags)
}

// measured refuses a name of another length than git takes it to have: git would find the next entry elsewhere. Where
// all bits are set git looks for the end itself.
func (e *indexEntry) measured(flags uint16) error {
	if length := int(flags & nameBits); length != nameBits && length != len(e.name) {
		return errIndex
	}
	return nil
}

// offsetVarint reads the number encoding that packs use for offsets. No bytes are used where it is cut off or too
// large.
func offsetVarint(b []byte) (v uint64, used int) {
	for i, c := range b {
		if i > 8 {
			return 0, 0
		}
		if i > 0 {
			v++
		}
		v = v<<7 | uint64(c&0x7f)
		if c&0x80 == 0 {
			return v, i + 1
		}
	}
	return 0, 0
}

// BlobID is the object id that git gives to contents, for ids of this length.
func BlobID(contents []byte, size int) []byte {
	var h hash.Hash = sha1.New()
	if size == sha256.Size {
		h = sha256.New()
	}
	h.Write([]byte("blob " + strconv.Itoa(len(contents)) + "\x00"))
	h.Write(contents)
	return h.Sum(nil)
}

// PackHas says whether the index of a pack (gitformat-pack(5), version 2) has an object. ReadAt reads n bytes at an
// offset of it, all or an error.
func PackHas(readAt func(off int64, n int) ([]byte, error), id []byte) (bool, error) {
	const fan = 8
	head, err := readAt(0, fan)
	if err != nil {
		return false, err
	}
	if string(head) != "\xfftOc\x00\x00\x00\x02" {
		return false, errIndex
	}
	bound := func(i int) (int64, error) {
		if i < 0 {
			return 0, nil
		}
		b, err := readAt(fan+4*int64(i), 4)
		if err != nil {
			return 0, err
		}
		return int64(binary.BigEndian.Uint32(b)), nil
	}
	low, err := bound(int(id[0]) - 1)
	if err != nil {
		return false, err
	}
	high, err := bound(int(id[0]))
	if err != nil {
		return false, err
	}
	for low < high {
		mid := (low + high) / 2
		b, err := readAt(fan+4*256+mid*int64(len(id)), len(id))
		if err != nil {
			return false, err
		}
		switch c := bytes.Compare(b, id); {
		case c == 0:
			return true, nil
		case c < 0:
			low = mid + 1
		default:
			high = mid
		}
	}
	return false, nil
}
