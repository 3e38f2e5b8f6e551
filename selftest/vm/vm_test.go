//go:build linux

package vm

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"sbx.example/sbx/selftest/need"
)

// host is one kind of machine with what is run there. Without the full set, those that are small are run with the
// oldest kernel; what is not wanted is no test at all, so that whatever is skipped lacks something.
type host struct {
	name  string
	small bool
	only  string // the one suite whose kernel can do it
	machine
}

// The user may start the helper with a password, and take the helper's bit away without one.
const (
	helperPath = "/usr/local/libexec/sbx/sbx-helper"
	sudoers    = "tester ALL=(root) " + helperPath + " launch\ntester ALL=(root) NOPASSWD: /usr/bin/chmod 0755 " +
		helperPath + "\n"
	password = `hash=$(openssl passwd -6 secret); sed -i "s|^tester:[^:]*|tester:$hash|" /etc/shadow` + "\n"
)

// hosts are all machines, in the order of docs/virtual-machines.md.
func hosts() []host {
	return []host{
		// Limits hold, are explained, and nothing is left of them; sbx doctor finds nothing amiss. No test of the host's does
		// this: few hosts delegate control groups to whoever runs tests.
		{name: "Limits", small: true, machine: machine{processors: 1,
			script: "sh /vm/acceptance.sh host && cd project && sh /vm/cgroup.sh /usr/local/bin/sbx"}},
		// A session to which systemd delegates nothing gets a scope from the user's systemd.
		{name: "Systemd", machine: machine{noGroup: true, need: []string{"systemctl", "dbus-daemon", "python3"},
			before: "sh /vm/systemd.sh", script: ":"}},
		// Nor is there systemd: sbx-helper prepares groups, for sandboxes of either kind.
		{name: "Prepared", machine: machine{noGroup: true, helper: "4755", need: []string{"python3"},
			before: "sh /vm/prepared.sh host", script: "sh /vm/prepared.sh"}},
		// An ordinary user's day in sandboxes that sbx-helper builds, set-user-id and through sudo.
		{name: "WithoutUserNamespaces", machine: machine{noUsers: true, noGroup: true, helper: "4755", sudoers: sudoers,
			before: password,
			need:   []string{"python3", "git", "make", "sudo", "openssl", "pgrep"}, script: `modes='static dynamic'
if unshare -Ur true 2>/dev/null; then echo "FAIL: there are user namespaces"; else echo "pass: there are no user namespaces"; fi
for mode in $modes; do sh /vm/day.sh setuid $mode; done
sudo -n chmod 0755 ` + helperPath + `
export PASSWORD=secret
for mode in $modes; do sh /vm/day.sh sudo $mode; done
sh /vm/sudo.sh`}},
		// The ordinary path passes the whole sbx selftest; what is left out there is named.
		{name: "Acceptance", machine: machine{script: "sh /vm/acceptance.sh"}},
		// The network by a tun device and by one of the helper's, projects on other file systems, and how the host fares
		// under bombs.
		{name: "Network", machine: machine{helper: "4755", before: "sh /vm/network.sh lab", need: []string{"curl", "pasta",
			"slirp4netns", "python3", "nft"}, script: "sh /vm/network.sh"}},
		{name: "FileSystems", machine: machine{before: "sh /vm/filesystems.sh make", need: []string{"mkfs.xfs", "mkfs.btrfs",
			"python3", "git"}, script: "sh /vm/filesystems.sh"}},
		{name: "Responsive", machine: machine{need: []string{"python3"}, script: "sh /vm/responsive.sh"}},
		// Containers from Debian packages, with limits of their own; a Nix daemon's builds.
		{name: "Containers", machine: machine{need: []string{"podman", "crun", "newuidmap", "fuse-overlayfs", "pgrep"},
			script: "sh /vm/containers.sh"}},
		// The other way round: sbx in containers that podman starts with its default options.
		{name: "InPodman", machine: machine{need: []string{"podman", "crun", "newuidmap", "node", "npm", "git"},
			script: "mkdir -p run in && XDG_RUNTIME_DIR=$HOME/run sh /vm/podman.sh /usr/local/bin/sbx $HOME/in"}},
		{name: "Groups", machine: machine{need: []string{"crun", "busybox", "python3", "newuidmap"},
			script: "sh /vm/groups.sh"}},
		{name: "Nix", machine: machine{need: []string{"nix-daemon", "unshare"},
			before: "unshare -m sh /vm/nix.sh /usr/local/bin/sbx 42424 /home/tester || echo FAIL: exit status $?", script: ":"}},
		// The packages, from install to purge.
		{name: "Packages", machine: machine{noUsers: true, noGroup: true, packages: true, need: []string{"dpkg", "dpkg-deb",
			"groupadd", "usermod"},
			before: "sh /vm/packages.sh", script: ":"}},
		// The whole sbx selftest in sandboxes that the helper builds.
		{name: "AcceptanceByHelper", machine: machine{noUsers: true, helper: "4755", script: "sh /vm/acceptance.sh helper"}},
		// A set-user-id bubblewrap builds sandboxes there, and passes what it has words for.
		{name: "Bwrap", machine: machine{noUsers: true, need: []string{"bwrap"}, before: "sh /vm/bwrap.sh install",
			script: "sh /vm/bwrap.sh"}},
		// AppArmor refuses user namespaces, which takes a kernel and a parser that know them.
		{name: "AppArmor", only: newest, machine: machine{helper: "4755", before: "sh /vm/apparmor.sh load",
			script: "sh /vm/apparmor.sh"}},
	}
}

// suites are those whose kernels are wanted for a host.
func (h host) suites() []string {
	switch {
	case full() && h.only != "":
		return []string{h.only}
	case full():
		return []string{oldest, newest}
	case h.small:
		return []string{oldest}
	}
	return nil
}

// TestMachines runs each host that is wanted with each kernel that is. With SBX_VM_COMMAND it runs that alone, for
// whoever wants to look around in a machine:
//
//	SBX_VM_COMMAND='id; sbx doctor' go test ./selftest/vm -run Machines -v
func TestMachines(t *testing.T) {
	if command := os.Getenv("SBX_VM_COMMAND"); command != "" {
		set := func(name string) bool { return os.Getenv(name) != "" }
		suite := os.Getenv("SBX_VM_SUITE")
		if suite == "" {
			suite = oldest
		}
		sum := ""
		machine{suite: suite, noUsers: set("SBX_VM_NO_USERNS"), noGroup: set("SBX_VM_NO_CGROUP"),
			helper:  os.Getenv("SBX_VM_HELPER"),
			sudoers: os.Getenv("SBX_VM_SUDOERS"), before: os.Getenv("SBX_VM_BEFORE"), script: command +
				"\necho pass: it ended"}.run(t, &sum)
		return
	}
	kernel(t, oldest) // which also finds out how machines are run
	var table strings.Builder
	for _, h := range hosts() {
		suites := h.suites()
		if len(suites) == 0 {
			continue
		}
		t.Run(h.name, func(t *testing.T) {
			for _, suite := range suites {
				t.Run(suite, func(t *testing.T) {
					m, sum := h.machine, "not run"
					m.suite = suite
					defer func() {
						word := map[bool]string{true: "FAIL", false: "ok"}[t.Failed()]
						fmt.Fprintf(&table, "%-4s  %-22s  %-17s  %s\n", word, h.name, suite, sum)
					}()
					m.run(t, &sum)
				})
			}
		})
	}
	if full() {
		t.Logf("%s: checks that passed, of all\n%s", shop.accel, table.String())
	}
}

// more says that machines are wanted beside the one that shows what nothing else does: those in which sbx runs programs
// on this host.
func more() bool { return full() || need.Thorough() }

// full says that whoever is there asked for all machines (make vm).
func full() bool { return os.Getenv("SBX_VM") == "full" }
