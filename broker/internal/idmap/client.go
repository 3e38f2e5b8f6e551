//go:build linux

package idmap

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Socket is where the broker listens, inside.
const Socket = "/run/sbx/ids.sock"

// IsClient says whether a program that was started under this name is meant to be newuidmap or newgidmap.
func IsClient(name string) bool {
	base := filepath.Base(name)
	return base == UIDTool || base == GIDTool
}

// Client is newuidmap(1) or newgidmap(1) inside a sandbox. args includes the program's name.
func Client(args []string, stderr io.Writer) int {
	tool := filepath.Base(args[0])
	if len(args) < 2+lineFields {
		fmt.Fprintf(stderr, "usage: %s PID INSIDE OUTSIDE COUNT [INSIDE OUTSIDE COUNT]...\n", tool)
		return 1
	}
	if err := request(tool, args[1], args[2:]); err != nil {
		fmt.Fprintf(stderr, "%s: %v\n", tool, err)
		return 1
	}
	return 0
}

func request(tool, process string, words []string) error {
	text, err := canonical(words)
	if err != nil {
		return err
	}
	pid, err := processOf(process)
	if err != nil {
		return err
	}
	pidfd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return fmt.Errorf("opening process %d: %w", pid, err)
	}
	defer unix.Close(pidfd)
	c, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: Socket, Net: "unix"})
	if err != nil {
		return fmt.Errorf("asking sbx, which gives ids to containers under --containers only: %w", err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(2 * patience))
	file := kindUID
	if tool == GIDTool {
		file = kindGID
	}
	if _, _, err := c.WriteMsgUnix([]byte(file+"\n"+text), unix.UnixRights(pidfd), nil); err != nil {
		return fmt.Errorf("asking sbx: %w", err)
	}
	answer, err := io.ReadAll(io.LimitReader(c, maxRequest))
	if err != nil {
		return fmt.Errorf("asking sbx: %w", err)
	}
	if string(answer) != answerGood {
		return fmt.Errorf("%s", answer)
	}
	return nil
}

// processOf reads PID, or fd:N, a descriptor of /proc/PID.
func processOf(word string) (int, error) {
	n, isFd := strings.CutPrefix(word, "fd:")
	v, err := strconv.Atoi(n)
	if err != nil || v < 0 {
		return 0, fmt.Errorf("%s is not a process", strconv.Quote(word))
	}
	if !isFd {
		return v, nil
	}
	link, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(v))
	if err != nil {
		return 0, fmt.Errorf("descriptor %d: %w", v, err)
	}
	return processOf(filepath.Base(link))
}
