//go:build linux

package selftest

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/plan"
	"sbx.example/sbx/selftest/need"
	"sbx.example/sbx/shared/wire"
)

// orgFlag makes the test's own binary a caller of sbx-helper under one of orgCases: "-org-helper NAME". It prints its
// result as JSON.
const orgFlag = "-org-helper"

// orgCase is a state of /etc/sbx/helper.toml and what must come of a request.
type orgCase struct {
	name   string
	text   string                           // %d is the caller's uid, and gid
	make   func(file string, uid int) error // what is different from a file of root's with this text
	plan   func() *plan.Plan                // nil: the base plan
	reason wire.Reason                      // 0: the program runs
	where  int64
	group  int // asks for control groups, in this way, instead
}

// orgCases: every key has a case that lets through and one that refuses, and every way of not being root's own file
// refuses.
func orgCases() []orgCase {
	hostNet := func() *plan.Plan { return change(func(p *plan.Plan) { p.Namespaces.Net = false }) }
	file := func(name string, make func(string, int) error) orgCase {
		return orgCase{name: name, text: "allow_uids = [%d]\n", make: make, reason: wire.OrgFile}
	}
	mode := func(m uint32) func(string, int) error {
		return func(f string, _ int) error { return unix.Chmod(f, m) }
	}
	dir := func(f string) string { return strings.TrimSuffix(f, "/helper.toml") }
	syntax := func(name, text string) orgCase { return orgCase{name: name, text: text, reason: wire.OrgFile} }
	return append(append(groupCases(), mountCases()...), []orgCase{
		{name: "no-file", make: func(f string, _ int) error { return os.Remove(f) }},
		{name: "no-folder", make: func(f string, _ int) error { return os.RemoveAll(dir(f)) }},
		{name: "empty"},
		{name: "uid", text: "# who\nallow_uids = [1, %d] # and nobody else\n"},
		{name: "other-uid", text: "allow_uids = [1]\n", reason: wire.OrgRefuses, where: -1},
		{name: "nobody", text: "allow_uids = []\n", reason: wire.OrgRefuses, where: -1},
		{name: "gid", text: "allow_gids = [%d]\n"},
		{name: "other-gid", text: "allow_gids = [0]\n", reason: wire.OrgRefuses, where: -1},
		{name: "host-network", text: "host_network = true\n", plan: hostNet},
		{name: "no-host-network", text: "host_network = false\n", plan: hostNet, reason: wire.OrgRefuses, where: -2},
		{name: "tmpfs", text: "max_tmpfs = 1048576\n"},
		{name: "one-byte", text: "max_tmpfs = 1\n", reason: wire.OrgRefuses},
		syntax("no-byte", "max_tmpfs = 0\n"), syntax("negative-bytes", "max_tmpfs = -1\n"), syntax("no-bytes",
			"max_tmpfs = 9223372036854775808\n"),
		{name: "small-tmpfs", text: "max_tmpfs = 1048575\n", reason: wire.OrgRefuses},
		{name: "network", text: "veth = false\nforwarding = false\nveth_range = \"10.0.0.0/24\"\n"},
		syntax("unknown-key", "alow_uids = [%d]\n"), syntax("twice", "allow_uids = [1]\nallow_uids = [%d]\n"),
		syntax("no-value", "overlay\n"),
		syntax("odd-truth", "overlay = no\n"), syntax("no-list", "allow_uids = %d\n"), syntax("negative",
			"allow_uids = [-1, %d]\n"), syntax("too-large", "allow_uids = [4294967296, %d]\n"),
		syntax("range-of-all", "veth_range = \"0.0.0.0/0\"\n"), syntax("a-table", "[who]\nallow_uids = [%d]\n"),
		syntax("zeros", "\x00"),
		syntax("too-long", strings.Repeat("# nothing to see here, go on reading ........................\n", 70000)),
		file("owner", func(f string, uid int) error { return os.Chown(f, uid, 0) }),
		file("group-may-write", mode(0o664)), file("all-may-write", mode(0o646)), file("caller-may-not-read", mode(0o600)),
		file("folder-of-the-caller", func(f string, uid int) error { return os.Chown(dir(f), uid, uid) }),
		file("folder-for-all", func(f string, _ int) error { return unix.Chmod(dir(f), 0o777) }),
		file("link", func(f string, _ int) error {
			if err := os.Rename(f, dir(f)+"/other"); err != nil {
				return err
			}
			return os.Symlink("/etc/sbx/other", f)
		}),
		file("folder-link", func(f string, _ int) error {
			if err := os.Rename(dir(f), dir(f)+"-other"); err != nil {
				return err
			}
			return os.Symlink("/etc/sbx-other", dir(f))
		}),
		file("fifo", func(f string, _ int) error { _ = os.Remove(f); return unix.Mkfifo(f, 0o644) }),
		file("folder-instead", func(f string, _ int) error { _ = os.Remove(f); return os.Mkdir(f, 0o755) }),
	}...)
}

// mountCases are mounts of other users', as fusermount3 makes them for everybody, that keep nobody from a sandbox.
func mountCases() []orgCase {
	const own = "/run/sbx-helper/mounts" // a tmpfs of this caller's alone
	mount := func(source, in string, n int) error {
		for i := range n {
			at := fmt.Sprintf("%s/%d", in, i)
			if err := os.MkdirAll(at, 0o755); err != nil {
				return err
			}
			if err := unix.Mount(source, at, "tmpfs", 0, "size=4k"); err != nil {
				return fmt.Errorf("mounting on it: %w", err)
			}
		}
		return nil
	}
	return []orgCase{
		{name: "mount-without-source", make: func(string, int) error { return mount("", own, 1) }},
		{name: "many-mounts", make: func(string, int) error { // mountinfo has more than 4 MiB then
			return mount("none", own+strings.Repeat("/"+strings.Repeat("\n", 250), 14), 350)
		}},
	}
}

func findOrg(name string) orgCase {
	for _, c := range orgCases() {
		if c.name == name {
			return c
		}
	}
	panic("no case " + name)
}

// placeOrg mounts the case's /etc, with what is different in scratch.
func placeOrg(scratch, name string, uid int) error {
	c, upper := findOrg(name), scratch+"/etc"
	for _, d := range []string{upper, scratch + "/etcwork", upper + "/sbx"} {
		if err := os.Mkdir(d, 0o755); err != nil {
			return err
		}
	}
	// What the host has there is not this test's.
	if err := unix.Setxattr(upper+"/sbx", "trusted.overlay.opaque", []byte("y"), 0); err != nil {
		return err
	}
	file := upper + "/sbx/helper.toml"
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(c.text, "%d", fmt.Sprint(uid))), 0o644); err != nil {
		return err
	}
	if c.make != nil {
		if err := c.make(file, uid); err != nil {
			return err
		}
	}
	if c.group != 0 {
		if err := placeGroups(); err != nil {
			return err
		}
	}
	return unix.Mount("overlay", "/etc", "overlay", 0, "lowerdir=/etc,upperdir="+upper+",workdir="+scratch+"/etcwork")
}

func orgCaller(name, uid string) int {
	c := findOrg(name)
	if c.group != 0 {
		id, _ := strconv.Atoi(uid)
		_ = json.NewEncoder(os.Stdout).Encode(groupsOf(c, id))
		return 0
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	p := basePlan()
	if c.plan != nil {
		p = c.plan()
	}
	_ = json.NewEncoder(os.Stdout).Encode((&attempt{name: name, plan: p, reason: c.reason, where: c.where,
		runs: c.reason == 0}).try())
	return 0
}

// TestHelperOrgFile: helper.toml is obeyed, and one that cannot be relied on refuses everything.
func TestHelperOrgFile(t *testing.T) {
	needHelper(t)
	for _, c := range orgCases() {
		t.Run(c.name, func(t *testing.T) {
			if c.group == 0 { // control groups are the host's
				t.Parallel()
			}
			tryOrg(t, c)
		})
	}
}

func tryOrg(t *testing.T, c orgCase) {
	args := shop.launch("4755+org:"+c.name, "/proc/self/exe", orgFlag, c.name, strconv.Itoa(shop.uid))
	if c.group == ofRoot {
		args[2] = "0"
	}
	cmd := exec.Command(args[0], args[1:]...)
	var errs strings.Builder
	cmd.Env, cmd.Dir, cmd.Stderr = []string{"PATH=/usr/bin:/bin"}, "/", &errs
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.Output()
	if err != nil && c.group != 0 && strings.Contains(errs.String(), noGroups) {
		need.Fact(t, false, "%s", errs.String())
	}
	var r result
	if e := json.Unmarshal(out, &r); e != nil || err != nil {
		t.Fatalf("%v, %v: %s%s", err, e, out, errs.String())
	}
	if r.Wrong != "" {
		t.Errorf("%s\n%+v", r.Wrong, r)
	}
}
