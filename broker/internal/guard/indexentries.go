package guard

import (
	"crypto/sha1"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
)

// IndexEntries is a digest of what an index of git says is tracked: names, modes, object ids, stages and marks. What it
// has of files' times and inodes is left out, so that an index which git has only refreshed has the same. An index that
// is divided in two, or not understood, has none.
func IndexEntries(index []byte) (string, bool) {
	for _, size := range [...]int{sha1.Size, sha256.Size} {
		if d, err := indexEntries(index, size); err == nil {
			return hex.EncodeToString(d), true
		}
	}
	return "", false
}

func indexEntries(index []byte, size int) ([]byte, error) {
	h := sha256.New()
	rest, err := eachEntry(index, size, func(e indexEntry, from []byte) {
		var length [4]byte
		binary.BigEndian.PutUint32(length[:], uint32(len(e.name)))
		h.Write(length[:])
		h.Write(e.name)
		h.Write(from[modeAt : modeAt+4])
		h.Write(e.id)
		h.Write([]byte{from[statSize+size] &^ (nameBits >> 8)}) // stage, and what git assumes
		if from[statSize+size]&(extendedBit>>8) != 0 {
			h.Write(from[statSize+size+2 : statSize+size+4])
		}
	})
	if err != nil {
		return nil, err
	}
	for len(rest) >= 8 { // extensions; one in capitals is only a help
		n := binary.BigEndian.Uint32(rest[4:])
		if rest[0] < 'A' || rest[0] > 'Z' || uint64(n) > uint64(len(rest)-8) {
			return nil, errIndex
		}
		rest = rest[8+n:]
	}
	if len(rest) != 0 {
		return nil, errIndex
	}
	return h.Sum(nil), nil
}
