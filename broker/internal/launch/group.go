//go:build linux

package launch

import (
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/helperclient"
	"sbx.example/sbx/broker/internal/program"
	"sbx.example/sbx/shared/wire"
)

// groupPatience bounds the wait for the helper, which the kernel may keep waiting for a while when it moves a process.
const groupPatience = 5 * time.Second

// Prepares says whether a set-user-id helper is installed that this host's administrator lets prepare control groups;
// only the helper itself decides, for this user.
func Prepares() (file string, ok bool) {
	b, _ := os.ReadFile("/etc/sbx/helper.toml")
	for line := range strings.Lines(string(b)) {
		if key, _, _ := strings.Cut(line, "="); strings.TrimSpace(key) == "cgroups" {
			file, setuid, err := find(hostHelperPaths)
			return file, err == nil && setuid
		}
	}
	return "", false
}

// Regroup has the helper move this process to where it may make control groups.
func Regroup(file string) error {
	helper, err := program.Roots(file)
	if err != nil {
		return fmt.Errorf("using %s: %w", file, err)
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	// The helper must be in a process group of this process's number (helper/group.go), so this one leads one for as long
	// as it takes.
	if group := unix.Getpgrp(); group != os.Getpid() {
		// Somebody must stay in the old one, or it would be gone: a process that ends at once does until it is waited for.
		stays, err := helper.Start(nil, &os.ProcAttr{Dir: "/", Env: []string{}, Files: []*os.File{null, null, null}})
		if err != nil {
			return fmt.Errorf("starting %s: %w", file, err)
		}
		defer func() { _, _ = stays.Wait() }()
		if err := unix.Setpgid(0, 0); err != nil {
			return fmt.Errorf("making a process group: %w", err)
		}
		defer func() { _ = unix.Setpgid(0, group) }()
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("making the helper's socket: %w", err)
	}
	defer unix.Close(pair[0])
	theirs := os.NewFile(uintptr(pair[1]), "wire")
	p, err := helper.Start([]string{"group"}, &os.ProcAttr{Dir: "/", Env: []string{}, Files: []*os.File{theirs, null,
		null}})
	theirs.Close()
	if err != nil {
		return fmt.Errorf("starting %s: %w", file, err)
	}
	defer p.Release() // one of them stays, to remove what is left at the end
	_, err = helperclient.Await(pair[0], wire.Grouped, groupPatience)
	return err
}
