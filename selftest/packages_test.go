//go:build linux

package selftest

import (
	"bytes"
	"crypto/sha256"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"sbx.example/sbx/selftest/need"
)

// TestPackages builds the packages twice, has lintian read them, and installs, upgrades, removes and purges
// them on a throw-away copy of this system's root. With SBX_THOROUGH=1 those for the other architecture are built, too.
func TestPackages(t *testing.T) {
	t.Parallel()
	need.Tool(t, "lintian", "rpm", "dpkg-deb", "zsh", "fish")
	need.Root(t, "to install packages in a mount namespace")
	build := func(want int, archs ...string) (string, map[string][32]byte) {
		dist := t.TempDir()
		cmd := exec.Command("sh", append([]string{"../packaging/build.sh"}, archs...)...)
		cmd.Env = append(os.Environ(), "DIST="+dist)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("building: %v\n%s", err, out)
		}
		files, err := filepath.Glob(dist + "/*")
		if err != nil || len(files) != want {
			t.Fatalf("built %d packages, want 3 for each of two formats and each architecture: %v", len(files), files)
		}
		sums := map[string][32]byte{}
		for _, f := range files {
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			sums[filepath.Base(f)] = sha256.Sum256(b)
		}
		return dist, sums
	}
	archs, count := []string{runtime.GOARCH}, 7 // with the feature of development containers
	if need.Thorough() {
		archs, count = nil, 13 // for all
	}
	dist, first := build(count, archs...)
	_, second := build(7, runtime.GOARCH)
	for name, sum := range second {
		if first[name] != sum && !(need.Thorough() && strings.HasSuffix(name, ".tgz")) { // which held those of both
			t.Errorf("%s: a second build gave other bytes", name)
		}
	}
	t.Run("lintian", func(t *testing.T) {
		debs, _ := filepath.Glob(dist + "/*.deb")
		out, err := exec.Command("lintian", append([]string{"--allow-root", "--fail-on", "error,warning"},
			debs...)...).CombinedOutput()
		if err != nil || bytes.Contains(out, []byte("W: ")) {
			t.Errorf("%v\n%s", err, out)
		}
	})
	t.Run("helper is plain", func(t *testing.T) {
		debs, _ := filepath.Glob(dist + "/*.deb")
		for _, deb := range debs {
			out, err := exec.Command("dpkg-deb", "-c", deb).Output()
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(string(out)) {
				if mode, _, _ := strings.Cut(line, " "); strings.ContainsAny(mode, "sS") {
					t.Errorf("%s brings a file that is privileged before its script has made the group: %s", deb, line)
				}
			}
		}
	})
	t.Run("install", func(t *testing.T) {
		if !overlayRoot(t) {
			need.Fact(t, false, "an overlay over / (the root file system takes no overlay)")
		}
		out, err := exec.Command("unshare", "-m", "sh", "testdata/packages.sh", dist, runtime.GOARCH,
			t.TempDir()).CombinedOutput()
		if err != nil || !strings.HasSuffix(string(out), "done\n") {
			t.Fatalf("%v\n%s", err, out)
		}
	})
}

// overlayRoot says whether an overlay can lie over the root file system.
func overlayRoot(t *testing.T) bool {
	dir := t.TempDir()
	return exec.Command("unshare", "-m", "sh", "-c",
		`mount -t tmpfs none "$0" && mkdir "$0/u" "$0/w" "$0/m" && mount -t overlay -o "lowerdir=/,upperdir=$0/u,workdir=$0/w" none "$0/m"`, dir).Run() == nil
}
