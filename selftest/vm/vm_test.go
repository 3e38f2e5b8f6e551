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

// TestLimits: on a host with delegated control groups limits hold, are explained, and nothing is left of them.
func TestLimits(t *testing.T) {
	machine{suite: oldest, need: []string{"python3"}, script: "mkdir project && cd project && sh /vm/cgroup.sh /usr/local/bin/sbx"}.run(t)
}
