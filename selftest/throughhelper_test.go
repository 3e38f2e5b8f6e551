//go:build linux

package selftest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"sbx.example/sbx/selftest/need"
)

// differs lists the scripts about something that a sandbox of the helper's does not have, with the
// reason; single lines of other scripts say so with a condition, see lacksInHelper.
var differs = [...]struct{ script, why string }{
	{"ephemeral", "there are no writable layers"},
	{"time_offset", "setting a clock's offset takes CAP_SYS_TIME, which the helper gives up"},
	{"no_fuse", "it makes a user namespace of its own; what holds without FUSE is in helper/differs"},
	{"guarded_names", "there is no guarded file system: a hidden name is covered, not absent (helper/differs)"},
	{"approve_native", "there is no user namespace to put the agent in, so nothing is mounted by answer: reading only " +
		"(approve_modes)"},
	{"gate_files", "there is no file server, so questions come by notification only (approve_modes)"},
	{"work_compiled", "the build caches start empty, so it would take minutes"},
	{"exit_status", "questions come by notification, where what was refused to execute does not exist"},
	{"work_servers", "a database server's start is not answered by the notification engine yet"},
	{"terminal_programs", "the same engine holds up a shell's start"},
	{"containers", "containers need the user namespaces that are missing there, and are refused"},
	{"containers_network", "the same"},
	{"containers_hostile", "the same"},
	{"nested_sandboxes", "sandboxes inside need the user namespaces that are missing there, and are refused"},
	{"nested_hostile", "the same"},
	{"transaction", "there are no writable layers to look at"},
	{"transaction_work", "the same"},
	{"transaction_hostile", "the same"},
	{"transaction_mounts", "the same"},
}

// same lists the scripts that must pass as they are. One that is in neither list is named in the log.
var same = [...]string{
	"bad_limits", "bad_paths", "bad_places", "debug_inside", "debug_outside", "descriptors", "only", "environment",
	"approve_modes", "approve_socket", "git_work", "guarded_depth", "guarded_trees", "judged", "late_read",
	"made_repositories",
	"leaves_nothing", "network", "path_options", "privileges", "profile_moderate", "profile_permissive", "profile_strict",
	"secrets_alias", "ssh_files",
	"session", "signals", "sockets", "terminal_hostile", "terminal_shell", "work_packages", "work_rebuild", "work_tools",
	"worktree", "writes_outside",
}

// quickly are those of them that are run without SBX_THOROUGH=1: in which lines differ, and about what the way of
// building a sandbox decides. The others show what the same broker does, as TestRun has them do.
var quickly = [...]string{
	"approve_modes", "bad_limits", "bad_paths", "bad_places", "debug_outside", "descriptors", "environment", "late_read",
	"leaves_nothing", "network", "path_options", "privileges", "profile_moderate", "profile_permissive", "profile_strict",
	"secrets_alias", "session", "signals", "sockets", "terminal_hostile", "terminal_shell", "writes_outside",
}

// lacksInHelper are the conditions that do not hold where there are no user namespaces, with the reason.
var lacksInHelper = [...]struct{ name, why string }{
	{"userns", "the line makes a user namespace itself, or asks for process 1 as the program"},
	{"layers", "what is read through an overlay is read with the rights of who mounted it, so the helper mounts none"},
	{"reopened", "the helper opens nothing for its caller: a file for standard input comes through a pipe"},
	{"names", "the host's files of names are shown: the session's own are not mounted over them there"},
	{"ahead", "the helper makes process 1, which begins with its plan"},
	{"guard", "a file server of the caller's could hold up a privileged process, so there is no guarded file system"},
}

// again lists scripts that are run once more in another way: with SBX_THOROUGH=1 all, else those of quickly.
func again(same, quickly []string) (files []string) {
	for _, name := range same {
		if need.Thorough() || slices.Contains(quickly, name) {
			files = append(files, "testdata/"+name+".txtar")
		}
	}
	return files
}

// TestRunThroughHelper runs the scripts again where there are no user namespaces and sbx-helper is
// set-user-id, and those of testdata/helper besides.
func TestRunThroughHelper(t *testing.T) {
	needHelper(t)
	work := filepath.Join(shop.dir, "work-helper")
	if err := os.Mkdir(work, 0o755); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("testdata/helper/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no scripts of the helper's own", err)
	}
	files = append(files, again(same[:], quickly[:])...)
	testscript.Run(t, testscript.Params{
		Files:       files,
		WorkdirRoot: work,
		Setup: func(env *testscript.Env) error {
			env.Setenv(throughHelper, "4755")
			return setup(env)
		},
		Cmds: commands(),
		Condition: func(name string) (bool, error) {
			for _, c := range lacksInHelper {
				if c.name == name {
					return false, nil
				}
			}
			return condition(name)
		},
		RequireUniqueNames: true,
		ContinueOnError:    true,
	})
}

// TestDiffersAreScripts: an entry that stands for nothing would hide the next script of that name.
func TestDiffersAreScripts(t *testing.T) {
	for _, d := range differs {
		if _, err := os.Stat("testdata/" + d.script + ".txtar"); err != nil || strings.TrimSpace(d.why) == "" {
			t.Errorf("differs: %s: %v", d.script, err)
		}
	}
	all, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		name := strings.TrimSuffix(filepath.Base(f), ".txtar")
		if !slices.Contains(same[:], name) && !slices.ContainsFunc(differs[:], func(d struct{ script, why string }) bool {
			return d.script == name
		}) {
			t.Logf("%s is not run through sbx-helper: put it into same or differs", name)
		}
	}
}
