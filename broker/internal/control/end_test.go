//go:build linux

package control

import (
	"bufio"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestEnd: what has been killed is gone when it is said so, also where it stood still; what outlives it is named. The
// control is the child that does not end with its parent.
func TestEnd(t *testing.T) {
	for _, outlives := range []bool{false, true} {
		text := "echo; read x"
		if outlives {
			text = "sleep 1000 >/dev/null & echo $!; read x"
		}
		cmd := exec.Command("sh", "-c", text)
		in, err1 := cmd.StdinPipe()
		out, err2 := cmd.StdoutPipe()
		if err1 != nil || err2 != nil || cmd.Start() != nil {
			t.Fatal(err1, err2)
		}
		line, _ := bufio.NewReader(out).ReadString('\n')
		if err := unix.Kill(cmd.Process.Pid, unix.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		var want []int
		if child, err := strconv.Atoi(strings.TrimSpace(line)); err == nil {
			want = []int{child}
		}
		left, err := End(cmd.Process.Pid, want, 300*time.Millisecond)
		for _, child := range want {
			_ = unix.Kill(child, unix.SIGKILL)
		}
		if err != nil || !slices.Equal(left, want) {
			t.Errorf("a child outlives it: %t: left %v, want %v: %v", outlives, left, want, err)
		}
		_ = cmd.Wait()
		in.Close()
	}
}
