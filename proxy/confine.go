//go:build linux

package main

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/landlock-lsm/go-landlock/landlock"
	"golang.org/x/sys/unix"

	"sbx.example/sbx/shared/proxied"
)

// resolvConf says which servers know names.
const resolvConf = "/etc/resolv.conf"

// confine gives up what serving does not take: every file but those by which names are looked up, programs, every port
// outside but those of the sites, and other processes. Where the kernel has no Landlock, files and ports are left.
func confine(c *proxied.Config) error {
	err := errors.Join(unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0),
		unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{}))
	if err != nil {
		return fmt.Errorf("giving up privileges: %w", err)
	}
	const dns = 53
	names := []string{"/etc"}
	if file, err := filepath.EvalSymlinks(resolvConf); err == nil {
		names = append(names, filepath.Dir(file)) // who looks after it replaces it
	}
	rules := []landlock.Rule{landlock.RODirs(names...).IgnoreIfMissing(), landlock.ConnectTCP(dns),
		landlock.ConnectSendUDP(dns), landlock.BindUDP(0)}
	for _, s := range c.Sites {
		rules = append(rules, landlock.ConnectTCP(s.Port))
	}
	if err := landlock.V11.BestEffort().Restrict(rules...); err != nil {
		return fmt.Errorf("setting Landlock's rules: %w", err)
	}
	return filter()
}
