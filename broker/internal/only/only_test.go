package only

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sbx.example/sbx/selftest/need"
)

func write(t *testing.T, p, text string, mode os.FileMode) string {
	t.Helper()
	if err := os.WriteFile(p, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestScript(t *testing.T) {
	dir := t.TempDir()
	sh, err := filepath.EvalSymlinks("/bin/sh")
	if err != nil {
		t.Fatal(err)
	}
	s, err := Resolve([]string{write(t, dir+"/tool", "#! /bin/sh -e\nexit 0\n", 0o755)})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(s.Programs, dir+"/tool") || !slices.Contains(s.Programs, sh) {
		t.Errorf("programs %v lack the script or its interpreter %s", s.Programs, sh)
	}
	if len(s.Programs) > 3 { // script, shell, loader
		t.Errorf("programs %v", s.Programs)
	}
	for _, p := range append(s.Programs, s.Masked...) {
		if c, _ := filepath.EvalSymlinks(p); c != p {
			t.Errorf("%s is not canonical", p)
		}
	}
}

func TestRefused(t *testing.T) {
	dir := t.TempDir()
	loop := dir + "/loop"
	for name, p := range map[string]string{
		"not an executable file": write(t, dir+"/plain", "x", 0o644),
		"no such file":           dir + "/none",
		"names no interpreter":   write(t, dir+"/odd", "#!\n", 0o755),
		"relative interpreter":   write(t, dir+"/rel", "#!sh\n", 0o755),
		"too many levels":        loop,
	} {
		os.Symlink(loop, loop)
		if s, err := Resolve([]string{p}); err == nil {
			t.Errorf("%s: resolved to %v", name, s)
		}
	}
	// an interpreter of itself ends
	self := dir + "/self"
	write(t, self, "#!"+self+"\n", 0o755)
	if _, err := Resolve([]string{self}); err != nil {
		t.Errorf("a script that is its own interpreter: %v", err)
	}
}

// What ldd says a program needs is mapped, and no program lies open among the libraries.
func TestLibraries(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		need.Fact(t, false, "git")
	}
	out, err := exec.Command("ldd", git).Output()
	if err != nil {
		need.Fact(t, false, "ldd (%v)", err)
	}
	s, err := Resolve([]string{git})
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		_, after, ok := strings.Cut(line, "=> ")
		if !ok {
			continue
		}
		lib, err := filepath.EvalSymlinks(strings.Fields(after)[0])
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(s.Mapped, func(m string) bool { return m == lib || strings.HasPrefix(lib, m+"/") }) {
			t.Errorf("%s is not mapped: %v", lib, s.Mapped)
		}
	}
	for _, m := range s.Mapped {
		if !isDir(m) {
			continue
		}
		files, _ := filepath.Glob(m + "/*")
		for _, f := range files {
			if st, err := os.Lstat(f); err == nil && st.Mode().IsRegular() && isProgram(f) && !slices.Contains(s.Masked, f) &&
				!slices.Contains(s.Programs, f) {
				t.Errorf("%s can be started by the loader", f)
			}
		}
	}
}
