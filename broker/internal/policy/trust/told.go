package trust

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"slices"
	"strings"

	"sbx.example/sbx/broker/internal/policy/ownfile"
)

// toldFile has one line for each thing that a person was told of a project's files: a digest, the oldest first. Nothing
// is given by what stands in it; it is not said again, no more.
const toldFile = "told"

// maxTold bounds the file, whatever is made a project. What falls out of it is said again.
const maxTold = 1000

// Told says whether a person was told these lines of these files before.
func Told(dir, project string, p Pins, lines []string, uid int) bool {
	data, err := told(dir, uid).Content()
	return err == nil && slices.Contains(strings.Split(string(data), "\n"), digest(project, p, lines))
}

// Tell remembers that a person is.
func Tell(dir, project string, p Pins, lines []string, uid int) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("creating state folder: %w", err)
	}
	return told(dir, uid).Edit(func(old []byte) ([]byte, error) {
		list := slices.DeleteFunc(strings.Split(string(old), "\n"), func(line string) bool { return !isPin(line) })
		list = append(list, digest(project, p, lines))
		return []byte(strings.Join(list[max(0, len(list)-maxTold):], "\n") + "\n"), nil
	})
}

func told(dir string, uid int) ownfile.File {
	return ownfile.File{Dir: dir, Name: toldFile, UID: uid, Mode: 0o600}
}

// digest is of the lines too: with the same files, other settings of the user's make other lines.
func digest(project string, p Pins, lines []string) string {
	h := sha256.New()
	fmt.Fprintf(h, "%q %s %s %q", project, p.Config, p.Policy, slices.Sorted(slices.Values(lines)))
	return hex.EncodeToString(h.Sum(nil))
}
