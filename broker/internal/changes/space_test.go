//go:build linux

package changes

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/selftest/need"
)

// What a file system has no room for is refused before anything is changed: bytes of all layers on it together, and
// files. The control is less of each.
func TestNotEnoughSpace(t *testing.T) {
	for name, c := range map[string]struct {
		fill func(l *lab, n int)
		few  int
		many int
		want string
	}{
		"bytes": {func(l *lab, n int) { l.write(l.upper, "f", string(bytes.Repeat([]byte("x"), n))) }, 300 << 10, 700 << 10,
			"1433600 bytes are to be written"},
		"files": {func(l *lab, n int) {
			for i := range n {
				l.write(l.upper, fmt.Sprint(i), "")
			}
		}, 10, 30, "60 files are to be made"},
	} {
		for _, full := range []bool{false, true} {
			l := newLab(t)
			err := unix.Mount("tmpfs", l.host, "tmpfs", 0, "size=1m,nr_inodes=50")
			need.Fact(t, err == nil, "the right to mount a small file system")
			t.Cleanup(func() { _ = unix.Unmount(l.host, unix.MNT_DETACH) })
			other := *l
			other.host, other.upper = l.host+"/other", l.ses+"/overlay/2/upper"
			l.check(errors.Join(os.Mkdir(other.host, 0o755), os.MkdirAll(other.upper, 0o700)))
			other.layer.Target, other.layer.Upper = other.host, other.upper
			l.begin()
			other.layer.since = l.layer.since
			n := c.few
			if full {
				n = c.many
			}
			c.fill(l, n)
			c.fill(&other, n)
			list, err := Scan([]Layer{l.layer, other.layer}, nil)
			l.check(err)
			res, err := Apply(list, l.opt())
			switch {
			case !full && err != nil:
				t.Errorf("%s: %v", name, err)
			case full && (!errors.Is(err, unix.ENOSPC) || !strings.Contains(err.Error(), c.want) || res.Applied > 0):
				t.Errorf("%s: %d applied, %v", name, res.Applied, err)
			}
		}
	}
}
