//go:build linux

package credential

import (
	"bytes"
	"crypto/sha1" //nolint:gosec // what the format says; nothing here relies on it
	"encoding/binary"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"time"
	"unicode/utf16"

	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/planner"
)

// javaStore is where the system keeps the list of certificates that Java trusts, "" where there is none or sbx cannot
// add to it. Debian and Fedora make it from the system's own.
func javaStore(fs planner.FS) string {
	for _, file := range []string{"/etc/ssl/certs/java/cacerts", "/etc/pki/ca-trust/extracted/java/cacerts"} {
		canon, _, _, err := host.Resolve(fs, file)
		if err != nil {
			continue
		}
		if head, err := fs.Peek(canon, 0, 64); err == nil && isJKS(head) {
			return canon
		}
	}
	return ""
}

// writeJava writes the host's list for Java with the session's authority in it.
func (g *Grants) writeJava(ca, dir string) error {
	if g.java == "" {
		return nil
	}
	store, err := os.ReadFile(g.java)
	if err == nil {
		store, err = trustedByJava(store, ca)
	}
	if err != nil {
		return fmt.Errorf("adding to what Java trusts (%s): %w", g.java, err)
	}
	return os.WriteFile(etc(dir, javaFile), store, 0o644)
}

// javaPassword is everybody's: it only finds damage.
const javaPassword = "changeit"

// isJKS says whether a list of Java's is in the format that this package can add to: JKS, version 2
// (sun.security.provider.JavaKeyStore). It begins with a magic number, the version and how many entries there are, and
// ends with a digest of all before.
func isJKS(store []byte) bool {
	return len(store) >= 12+sha1.Size && bytes.HasPrefix(store, []byte{0xfe, 0xed, 0xfe, 0xed, 0, 0, 0, 2})
}

// trustedByJava is a list of Java's with one more certificate, which is PEM.
func trustedByJava(store []byte, certificate string) ([]byte, error) {
	block, _ := pem.Decode([]byte(certificate))
	if block == nil || !isJKS(store) {
		return nil, errors.New("no certificate, or no list of Java's")
	}
	const trusted = 2
	out := bytes.Clone(store[:len(store)-sha1.Size])
	binary.BigEndian.PutUint32(out[8:], binary.BigEndian.Uint32(out[8:])+1)
	out = binary.BigEndian.AppendUint32(out, trusted)
	out = appendUTF(out, "sbx")
	out = binary.BigEndian.AppendUint64(out, uint64(time.Now().UnixMilli()))
	out = appendUTF(out, "X.509")
	out = binary.BigEndian.AppendUint32(out, uint32(len(block.Bytes)))
	out = append(out, block.Bytes...)
	d := sha1.New() //nolint:gosec // as above
	for _, c := range utf16.Encode([]rune(javaPassword)) {
		_ = binary.Write(d, binary.BigEndian, c)
	}
	d.Write([]byte("Mighty Aphrodite"))
	d.Write(out)
	return d.Sum(out), nil
}

// appendUTF adds a string as java.io.DataOutput.writeUTF does; ASCII is the same in it.
func appendUTF(b []byte, s string) []byte {
	return append(binary.BigEndian.AppendUint16(b, uint16(len(s))), s...)
}
