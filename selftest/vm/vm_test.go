package vm

import (
	"os"
	"testing"
)

// TestCommand runs SBX_VM_COMMAND in a machine, for whoever wants to look around there:
//
//	SBX_VM_COMMAND='id; sbx doctor' go test ./selftest/vm -run Command -v
func TestCommand(t *testing.T) {
	command := os.Getenv("SBX_VM_COMMAND")
	if command == "" {
		t.Skip("SBX_VM_COMMAND is empty")
	}
	set := func(name string) bool { return os.Getenv(name) != "" }
	suite := os.Getenv("SBX_VM_SUITE")
	if suite == "" {
		suite = oldest
	}
	machine{suite: suite, noUsers: set("SBX_VM_NO_USERNS"), noGroup: set("SBX_VM_NO_CGROUP"), helper: os.Getenv("SBX_VM_HELPER"),
		sudoers: os.Getenv("SBX_VM_SUDOERS"), before: os.Getenv("SBX_VM_BEFORE"), script: command + "\necho pass: it ended"}.run(t)
}

// full says that more than the small set is wanted (make vm): emulation is slow.
func full() bool { return os.Getenv("SBX_VM") == "full" }

// kernels runs test with every kernel that is wanted: all of them in the full set, else the oldest.
func kernels(t *testing.T, test func(t *testing.T, suite string)) {
	for _, suite := range [...]string{oldest, newest} {
		t.Run(suite, func(t *testing.T) {
			if suite != oldest && !full() {
				t.Skip("not in the small set (make vm)")
			}
			test(t, suite)
		})
	}
}

// TestLimits: on a host with delegated control groups limits hold, are explained, and nothing is left of them.
func TestLimits(t *testing.T) {
	kernels(t, func(t *testing.T, suite string) {
		machine{suite: suite, need: []string{"python3"}, script: "mkdir project && cd project && sh /vm/cgroup.sh /usr/local/bin/sbx"}.run(t)
	})
}

// The user may start the helper with a password, and take the helper's bit away without one.
const (
	helperPath = "/usr/local/libexec/sbx/sbx-helper"
	sudoers    = "tester ALL=(root) " + helperPath + " launch\ntester ALL=(root) NOPASSWD: /usr/bin/chmod 0755 " + helperPath + "\n"
	password   = `hash=$(openssl passwd -6 secret); sed -i "s|^tester:[^:]*|tester:$hash|" /etc/shadow` + "\n"
)

// TestWithoutUserNamespaces: an ordinary user's day in sandboxes that sbx-helper builds, set-user-id and through sudo.
func TestWithoutUserNamespaces(t *testing.T) {
	kernels(t, func(t *testing.T, suite string) {
		modes := "static"
		if full() {
			modes = "static dynamic"
		}
		machine{suite: suite, noUsers: true, noGroup: true, helper: "4755", sudoers: sudoers, before: password,
			need: []string{"python3", "git", "make", "sudo", "openssl", "pgrep"}, script: "modes='" + modes + "'" + `
if unshare -Ur true 2>/dev/null; then echo "FAIL: there are user namespaces"; else echo "pass: there are no user namespaces"; fi
for mode in $modes; do sh /vm/day.sh setuid $mode; done
sudo -n chmod 0755 ` + helperPath + `
export PASSWORD=secret
for mode in $modes; do sh /vm/day.sh sudo $mode; done
sh /vm/sudo.sh`}.run(t)
	})
}

// TestAcceptance: the ordinary path passes the whole sbx selftest with Yama, AppArmor and delegated control groups. What
// is left out there is named, and must be one of the facts that such a machine does not have.
func TestAcceptance(t *testing.T) {
	kernels(t, func(t *testing.T, suite string) {
		if !full() {
			t.Skip("not in the small set (make vm)")
		}
		machine{suite: suite, script: "sh /vm/acceptance.sh"}.run(t)
	})
}

// TestOtherHosts: the network by a tun device, projects on other file systems, and how the host fares under bombs.
func TestOtherHosts(t *testing.T) {
	for _, c := range [...]struct {
		script, before string
		need           []string
	}{
		{"network.sh", "sh /vm/network.sh lab", []string{"curl", "pasta", "slirp4netns", "python3", "nft"}},
		{"filesystems.sh", "sh /vm/filesystems.sh make", []string{"mkfs.xfs", "mkfs.btrfs", "python3", "git"}},
		{"responsive.sh", "", []string{"python3"}},
	} {
		t.Run(c.script, func(t *testing.T) {
			if !full() {
				t.Skip("not in the small set (make vm)")
			}
			kernels(t, func(t *testing.T, suite string) {
				machine{suite: suite, before: c.before, need: c.need, script: "sh /vm/" + c.script}.run(t)
			})
		})
	}
}

// TestAppArmor: a host where AppArmor refuses user namespaces, which takes a kernel and a parser that know them.
func TestAppArmor(t *testing.T) {
	if !full() {
		t.Skip("not in the small set (make vm)")
	}
	machine{suite: newest, helper: "4755", before: "sh /vm/apparmor.sh load", script: "sh /vm/apparmor.sh"}.run(t)
}
