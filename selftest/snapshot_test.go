//go:build linux

package selftest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/rogpeppe/go-internal/testscript"
)

func cmdSnapshot(ts *testscript.TestScript, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: snapshot FILE DIR...")
	}
	var b strings.Builder
	for _, dir := range args[1:] {
		text, err := snapshot(ts.MkAbs(dir))
		ts.Check(err)
		b.WriteString(text)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(b.String()), 0o644))
}

// snapshot lists everything below dir, one line each: kind, mode, owner, links, change of content or
// of a directory, digest. The times of directories are in it, so that a file that came and went shows.
// sbx's own records are left out, which is the one thing that it may leave.
func snapshot(dir string) (string, error) {
	var b strings.Builder
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if strings.HasSuffix(p, "/.local/state/sbx") {
			return filepath.SkipDir
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		st := info.Sys().(*syscall.Stat_t)
		what := ""
		switch {
		case info.Mode().IsRegular():
			text, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			sum := sha256.Sum256(text)
			what = hex.EncodeToString(sum[:8])
		case info.Mode()&fs.ModeSymlink != 0:
			what, _ = os.Readlink(p)
		}
		fmt.Fprintf(&b, "%s %v %d %d %d.%09d %s\n", strings.TrimPrefix(p, dir), info.Mode(), st.Uid, st.Nlink, st.Mtim.Sec,
			st.Mtim.Nsec, what)
		return nil
	})
	return b.String(), err
}
