//go:build linux

package gatefs

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// testUser is who the tests run as when they are started by root: what is promised must hold for an ordinary user.
const testUser = 1000

func TestMain(m *testing.M) {
	if os.Getenv(insideEnv) != "" {
		os.Exit(insideMain())
	}
	if os.Getenv(serveEnv) != "" {
		os.Exit(serveMain())
	}
	if os.Geteuid() != 0 || fuzzing() {
		os.Exit(m.Run())
	}
	code, err := rerun()
	if err != nil {
		fmt.Fprintln(os.Stderr, "running the tests as an ordinary user:", err)
		code = 1
	}
	os.Exit(code)
}

func fuzzing() bool {
	for _, a := range os.Args {
		if strings.HasPrefix(a, "-test.fuzz") {
			return true
		}
	}
	return false
}

func rerun() (int, error) {
	_ = os.Chmod("/dev/fuse", 0o666) // absent: the tests that need it say so
	dir, err := os.MkdirTemp("", "gatefs")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	if err := os.Chown(dir, testUser, testUser); err != nil {
		return 0, err
	}
	var args []string
	for _, a := range os.Args[1:] {
		switch {
		case strings.HasPrefix(a, "-test.testlogfile"), strings.HasPrefix(a, "-test.coverprofile"), strings.HasPrefix(a,
			"-test.gocoverdir"),
			strings.HasPrefix(a, "-test.outputdir"), strings.HasPrefix(a, "-test.cpuprofile"), strings.HasPrefix(a,
				"-test.memprofile"):
		default:
			args = append(args, a)
		}
	}
	c := exec.Command("/proc/self/exe", args...)
	c.Args[0] = os.Args[0]
	c.Dir = dir
	c.Env = append(os.Environ(), "TMPDIR="+dir, "HOME="+dir)
	c.Stdout, c.Stderr = os.Stdout, os.Stderr
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: testUser, Gid: testUser}}
	err = c.Run()
	if c.ProcessState == nil {
		return 0, err
	}
	return c.ProcessState.ExitCode(), nil
}
