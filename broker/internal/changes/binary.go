//go:build linux

package changes

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1"
	"encoding/binary"
	"fmt"
)

// letters are those in which git writes four bytes as five (git's base85.c).
const letters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"

// gitBinary writes both sides of a file that is no text, in the form in which git applies it. nil is no file.
func gitBinary(w *bytes.Buffer, old, now []byte) error {
	fmt.Fprintf(w, "index %s..%s\nGIT binary patch\n", blobID(old), blobID(now))
	for _, side := range [...][]byte{now, old} {
		var packed bytes.Buffer
		z := zlib.NewWriter(&packed)
		if _, err := z.Write(side); err != nil {
			return err
		}
		if err := z.Close(); err != nil {
			return err
		}
		fmt.Fprintf(w, "literal %d\n", len(side))
		for b := packed.Bytes(); len(b) > 0; {
			n := min(len(b), 52)
			if n <= 26 { // the length of the line comes first
				w.WriteByte(byte('A' + n - 1))
			} else {
				w.WriteByte(byte('a' + n - 27))
			}
			base85(w, b[:n])
			w.WriteByte('\n')
			b = b[n:]
		}
		w.WriteByte('\n')
	}
	return nil
}

func base85(w *bytes.Buffer, b []byte) {
	for ; len(b) > 0; b = b[min(len(b), 4):] {
		var four [4]byte
		copy(four[:], b)
		v := binary.BigEndian.Uint32(four[:])
		var five [5]byte
		for i := len(five) - 1; i >= 0; i-- {
			five[i], v = letters[v%85], v/85
		}
		w.Write(five[:])
	}
}

// blobID is the name that git has for a file's contents, by which it compares what it finds.
func blobID(b []byte) string {
	if b == nil {
		return fmt.Sprintf("%040d", 0)
	}
	h := sha1.New()
	fmt.Fprintf(h, "blob %d\x00", len(b))
	h.Write(b)
	return fmt.Sprintf("%x", h.Sum(nil))
}
