//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// item is one act of a batch. NS and Drop are for negative controls on the host.
type item struct {
	ID   string   `json:"id"`
	Act  string   `json:"act"`
	Args []string `json:"args"`
	Host bool     `json:"host,omitempty"`
	Drop bool     `json:"drop,omitempty"`
	NS   string   `json:"ns,omitempty"` // "", user, net, unmapped
}

const actTime = 3 * time.Minute // an emulated machine on a busy host is several hundred times slower

// batch runs every act in a process of its own, so that what one changes cannot disturb the next.
func batch(args []string) int {
	if len(args) != 1 {
		os.Stderr.WriteString("probe: batch needs one file\n")
		return 2
	}
	b, err := os.ReadFile(args[0])
	if err != nil {
		os.Stderr.WriteString("probe: reading the batch: " + err.Error() + "\n")
		return 2
	}
	var items []item
	if err := json.Unmarshal(b, &items); err != nil {
		os.Stderr.WriteString("probe: decoding the batch: " + err.Error() + "\n")
		return 2
	}
	for _, it := range items {
		o := runItem(it)
		o.ID, o.Act = it.ID, it.Act
		if printJSON(o) != 0 {
			return 1
		}
	}
	return 0
}

func runItem(it item) outcome {
	ctx, cancel := context.WithTimeout(context.Background(), actTime)
	defer cancel()
	var argv []string
	if it.Host || it.NS != "" {
		argv = append(argv, "-host")
	}
	if it.Drop {
		argv = append(argv, "-drop")
	}
	cmd := exec.CommandContext(ctx, self(), append(append(argv, it.Act), it.Args...)...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &out, &errs, time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	cmd.Env = os.Environ()
	if !inNamespace(cmd, it.NS) {
		return skipped(it.Act, "unknown namespace "+it.NS)
	}
	err := cmd.Run()
	if it.NS != "" && out.Len() == 0 && err != nil {
		return skipped(it.Act, "userns: no namespace of its own: "+err.Error())
	}
	return reading(out.Bytes(), errs.String(), err, ctx.Err() != nil)
}

// reading takes the last JSON line; anything before it was printed by a program the act started.
func reading(out []byte, errs string, err error, late bool) outcome {
	lines := bytes.Split(bytes.TrimSpace(out), []byte{'\n'})
	var o outcome
	if json.Unmarshal(lines[len(lines)-1], &o) == nil && o.Act != "" {
		return o
	}
	if late {
		return outcome{Errno: "TIMEOUT"}
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		if ws, ok := exit.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
			return outcome{Errno: unix.SignalName(ws.Signal())}
		}
	}
	// The Go runtime dies with a text when a signal such as SIGSYS arrives in its own code.
	for _, sig := range []string{"SIGSYS", "SIGSEGV", "SIGBUS"} {
		if strings.Contains(errs, sig) {
			return outcome{Errno: sig}
		}
	}
	note := strings.TrimSpace(errs)
	if err != nil {
		note = err.Error() + " " + note
	}
	return outcome{Errno: "DIED", Detail: map[string]string{"note": note[:min(len(note), 300)]}}
}

func inNamespace(cmd *exec.Cmd, ns string) bool {
	a := cmd.SysProcAttr
	ids := func(host int) []syscall.SysProcIDMap { return []syscall.SysProcIDMap{{HostID: host, Size: 1}} }
	switch ns {
	case "":
		return true
	case "unmapped":
		a.Cloneflags = unix.CLONE_NEWUSER
		return true
	case "user":
		a.Cloneflags = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS
		cmd.Env = append(cmd.Env, "SBXPROBE_NS=user")
	case "net":
		a.Cloneflags = unix.CLONE_NEWUSER | unix.CLONE_NEWNET
		cmd.Env = append(cmd.Env, "SBXPROBE_NS=net")
	default:
		return false
	}
	a.UidMappings, a.GidMappings = ids(unix.Getuid()), ids(unix.Getgid())
	return true
}

// self is the probe's own path: argv[0] where it is absolute, since a sandbox may have no /proc.
func self() string {
	if strings.HasPrefix(os.Args[0], "/") {
		if _, err := os.Stat(os.Args[0]); err == nil {
			return os.Args[0]
		}
	}
	return "/proc/self/exe"
}
