//go:build linux

package tools

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/decide"
	"sbx.example/sbx/broker/internal/quoting"
	"sbx.example/sbx/broker/plan"
)

// Named is the tool that this process was started as, "" where it is none: by its file, since a program may start
// another under any name.
func Named() string {
	file, err := os.Readlink("/proc/self/exe")
	if err != nil || path.Dir(file) != decide.Tools {
		return ""
	}
	return path.Base(file)
}

// refused is the status of a call that was not carried out, or not to its end.
const refused = 125

// Client calls a tool from inside, and returns its exit status.
func Client(tool string, args []string, std [3]*os.File) int {
	end, err := call(tool, args, std)
	if err != nil {
		end = End{Status: refused, Message: plan.Bytes(err.Error())}
	}
	if end.Message != "" {
		fmt.Fprintf(std[2], "sbx: tool %s: %s\n", quoting.Quote(tool), quoting.ASCII(string(end.Message)))
	}
	return end.Status
}

func call(tool string, args []string, std [3]*os.File) (End, error) {
	var buf [unix.PathMax]byte
	n, err := unix.Getcwd(buf[:]) // not what $PWD says
	if err != nil {
		return End{}, fmt.Errorf("finding the working directory: %w", err)
	}
	cwd := strings.TrimSuffix(string(buf[:n]), "\x00")
	text, err := json.Marshal(said{Tool: tool, Args: plan.BytesOf(args), Cwd: plan.Bytes(cwd)})
	if err != nil {
		return End{}, err
	}
	c, err := net.Dial("unix", Socket)
	if err != nil {
		return End{}, fmt.Errorf("asking sbx, which runs it: %w", err)
	}
	defer c.Close()
	if err := writeFrame(c, frameCall, text); err != nil && !errors.Is(err, unix.EPIPE) {
		return End{}, fmt.Errorf("asking sbx: %w", err)
	}
	wanted := make(chan struct{}, ahead)
	go sendInput(c, std[0], wanted)
	for {
		kind, data, err := readFrame(c, maxPiece, nil)
		if err != nil {
			return End{}, fmt.Errorf("sbx has not answered to the end; at most %d calls run at a time: %w", maxCalls, err)
		}
		switch kind {
		case frameWants:
			wanted <- struct{}{}
		case frameOutput:
			_, err = std[1].Write(data)
		case frameErrors:
			_, err = std[2].Write(data)
		case frameEnd:
			var end End
			err = json.Unmarshal(data, &end)
			return end, err
		}
		if err != nil {
			return End{}, err
		}
	}
}

// sendInput sends a piece of the input for each that is wanted, and an empty one at its end.
func sendInput(c net.Conn, from io.Reader, wanted <-chan struct{}) {
	buf := make([]byte, maxPiece)
	for range wanted {
		n, err := from.Read(buf)
		for n == 0 && err == nil {
			n, err = from.Read(buf)
		}
		if writeFrame(c, frameInput, buf[:max(n, 0)]) != nil || err != nil && n <= 0 {
			return // reading from the broker fails as well, or there is no more
		}
	}
}
