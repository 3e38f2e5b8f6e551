//go:build linux

package late

import (
	"testing"

	"golang.org/x/sys/unix"
)

// TestLooksAgainInSilence: a program that fills the kernel's queue as often as it likes has everything looked at again,
// and cannot fill a terminal with what was said before.
func TestLooksAgainInSilence(t *testing.T) {
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	var said []string
	w := &Watcher{fd: fd, said: map[string]bool{}, configs: map[int32]string{}, Options: Options{
		Configs: []string{t.TempDir() + "/gone/config", t.TempDir() + "/lost/config"},
		Warn:    func(text string) { said = append(said, text) }}}
	for range 3 {
		w.event(-1, unix.IN_Q_OVERFLOW, "")
	}
	if len(said) != 2 || said[0] == said[1] {
		t.Errorf("each of two files has to be warned of once: %q", said)
	}
}
