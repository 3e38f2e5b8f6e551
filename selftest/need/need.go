// Package need ends tests that cannot run here: skipped with the missing fact named, failed where SBX_MUST_WORK=1
// promises that everything works (in CI). It also runs those that need a network namespace in one of their own.
package need

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// T is what ends a test: a *testing.T, a *testing.B, or the T of a script.
type T interface {
	Skip(args ...any)
	Fatal(args ...any)
}

// Fact ends a test unless the machine has what it needs.
func Fact(t T, has bool, fact string, details ...any) {
	if h, ok := t.(interface{ Helper() }); ok {
		h.Helper()
	}
	if has {
		return
	}
	text := "missing: " + fmt.Sprintf(fact, details...)
	if MustWork() {
		t.Fatal(text)
	}
	t.Skip(text)
}

// Tool ends a test unless programs are installed.
func Tool(t T, names ...string) {
	for _, name := range names {
		_, err := exec.LookPath(name)
		Fact(t, err == nil, "the program %s", name)
	}
}

// Gits are the programs git that a test goes through: the installed one, and those that SBX_TEST_GITS names, separated
// by colons.
func Gits(t T) []string {
	if h, ok := t.(interface{ Helper() }); ok {
		h.Helper()
	}
	installed, err := exec.LookPath("git")
	Fact(t, err == nil, "the program git")
	return append([]string{installed}, filepath.SplitList(os.Getenv("SBX_TEST_GITS"))...)
}

// Root skips a test that needs root, for what it says, where an ordinary user runs it. That is not something that the
// machine lacks, so SBX_MUST_WORK does not ask for it: CI runs as root.
func Root(t T, what string) {
	if os.Geteuid() != 0 {
		t.Skip("missing: root, " + what)
	}
}

// MustWork says whether a test that cannot run here is a failure.
func MustWork() bool { return os.Getenv("SBX_MUST_WORK") == "1" }

// Thorough says whether tests that repeat themselves do so as often as is of use (SBX_THOROUGH=1, in CI): races, random
// plans, the same script by every way in which a sandbox can be built. Otherwise each of them runs for a shorter time.
func Thorough() bool { return os.Getenv(thorough) == "1" }

const thorough = "SBX_THOROUGH"

// ThoroughEnv hands the word on to a process that is given an environment of its own.
func ThoroughEnv() string { return thorough + "=" + os.Getenv(thorough) }

// Rounds is one of two numbers: quick, or many where the tests are to be thorough.
func Rounds(quick, many int) int {
	if Thorough() {
		return many
	}
	return quick
}
