//go:build linux

package selftest

import (
	"cmp"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"sbx.example/sbx/selftest/checks"
	"sbx.example/sbx/selftest/need"
)

// bwrapMode has bubblewrap build all sandboxes, set-user-id, where there are no user namespaces.
const bwrapMode = "4755+bwrap-alone"

// sameInBwrap are scripts that must pass as they are where bubblewrap builds the sandboxes.
var sameInBwrap = [...]string{
	"bad_paths", "bad_places", "descriptors", "environment", "approve_modes", "approve_socket", "git_work",
	"guarded_depth", "judged", "leaves_nothing", "network", "privileges", "profile_moderate", "profile_permissive",
	"profile_strict", "secrets_alias", "ssh_files",
	"signals", "sockets", "terminal_hostile", "terminal_shell", "work_rebuild", "writes_outside",
}

// quicklyInBwrap are those of them that are run without SBX_THOROUGH=1 (see quickly).
var quicklyInBwrap = [...]string{
	"approve_modes", "descriptors", "environment", "leaves_nothing", "network", "privileges", "profile_strict", "signals",
	"sockets", "terminal_hostile", "writes_outside",
}

// TestRunThroughBwrap runs scripts again there.
func TestRunThroughBwrap(t *testing.T) {
	t.Parallel()
	needHelper(t)
	need.Tool(t, "bwrap")
	work := filepath.Join(shop.dir, "work-bwrap")
	must(t, os.Mkdir(work, 0o755))
	testscript.Run(t, testscript.Params{
		Files:       again(sameInBwrap[:], quicklyInBwrap[:]),
		WorkdirRoot: work,
		Setup: func(env *testscript.Env) error {
			env.Setenv(throughHelper, bwrapMode)
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

// lostInBwrap are the checks that fail there, with the loss that says so, beside those of --only, which is refused.
var lostInBwrap = map[string]string{
	"RS-04": "sizes of /tmp", "RS-04-inodes": "number of files in /tmp", "VM-05": "noexec",
}

// TestSelftestThroughBwrap runs the acceptance checks there.
func TestSelftestThroughBwrap(t *testing.T) {
	t.Parallel()
	needHelper(t)
	need.Tool(t, "bwrap")
	dir := filepath.Join(shop.dir, "through-bwrap")
	must(t, os.MkdirAll(filepath.Join(dir, "home"), 0o755))
	for from, to := range map[string]string{shop.sbx: "sbx", shop.probe: "sbx-probe"} {
		must(t, os.Link(from, filepath.Join(dir, to)))
	}
	must(t, shop.own(filepath.Join(dir, "home")))
	args := shop.launch(bwrapMode, filepath.Join(dir, "sbx"), "selftest", "--json")
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env, cmd.Dir = shop.env(filepath.Join(dir, "home"), dir), dir
	out, err := cmd.Output()
	var report checks.Report
	if e := json.Unmarshal(out, &report); e != nil || len(report.Checks) == 0 {
		t.Fatalf("sbx selftest --json: %v, %v\n%.3000s", err, e, out)
	}
	for _, r := range report.Checks {
		fact, known := notInHelper[r.ID]
		lost := lostInBwrap[r.ID] != "" || r.Group == checks.Only
		switch {
		case lost && strings.HasPrefix(r.Missing, "time: "): // 20,000 files, which the broker hears of
		case lost != (r.Status == checks.Fail || r.Status == checks.Broken):
			t.Errorf("%s %s: what holds now belongs off the list of what is lost (%s)", r.Status, r.ID, r.Got)
		case r.Status == checks.Pass || lost:
		case r.Status != checks.Skip:
			t.Errorf("%s %s: expected %s, got %s, control %s (%s)", r.Status, r.ID, r.Expected, r.Got, r.Control, r.Missing)
		case strings.HasPrefix(r.Missing, "cgroup: "), strings.HasPrefix(r.Missing, "containers: "):
		case !known || !strings.HasPrefix(r.Missing, fact):
			t.Errorf("%s was left out: %s", r.ID, r.Missing)
		}
	}
}

// TestBwrapIsLookedAt: nothing is started where bubblewrap has mounted something else than was planned, or lets it be
// written. A script in its place stands for somebody who is quick between the plan and the mounts.
func TestBwrapIsLookedAt(t *testing.T) {
	needHelper(t)
	need.Tool(t, "bwrap", "sed")
	const change = `tr '\0' '\n' <&6 | sed 'WHAT' | tr '\n' '\0' >"$d.args"; exec 6<"$d.args"`
	for name, c := range map[string]struct{ script, says string }{
		"another tree": {`mv "$d" "$d.$$"; mkdir "$d"`, "looking at what is mounted .*granted: .*stale"},
		"writable": {strings.Replace(change, "WHAT", "s/^--ro-bind/--bind/", 1),
			"looking at what is mounted .*granted: .*stale"},
		"a secret": {strings.Replace(change, "WHAT", `/^--dev-bind$/{N;N;/\.env$/d}`, 1),
			`looking at what is mounted .*\.env: .*stale`},
		"nothing": {},
	} {
		home, project := sandboxHome(t)
		granted := filepath.Join(home, "granted")
		must(t, os.Mkdir(granted, 0o755))
		must(t, os.WriteFile(filepath.Join(project, ".env"), []byte("KEY=1\n"), 0o644))
		must(t, shop.own(home))
		script := "#!/bin/sh\nd=" + granted + "\n[ $# -eq 1 ] || { " + cmp.Or(c.script, ":") + "; }\nexec " + realBwrap +
			" \"$@\"\n"
		args := shop.launch("4755+bwrap:"+script, shop.sbx, "run", "--static", "--backend", "bwrap", "--ro", granted, "--",
			"touch", "ran")
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Env, cmd.Dir = shop.env(home, home), project
		out, _ := cmd.CombinedOutput()
		status := cmd.ProcessState.ExitCode()
		_, err := os.Stat(filepath.Join(project, "ran"))
		switch {
		case c.says == "" && (status != 0 || err != nil):
			t.Errorf("the control: status %d\n%s", status, out)
		case c.says != "" && (status != 125 || err == nil || !regexp.MustCompile(c.says).Match(out)):
			t.Errorf("%s: status %d, want 125 and %q\n%s", name, status, c.says, out)
		}
	}
}

// TestOlderKernel: before Linux 5.12 bubblewrap builds the sandboxes, without being named, and what such a kernel lacks
// is said. The kernel here says that it is an old one and knows no system call of those that came after 5.4.
func TestOlderKernel(t *testing.T) {
	needHelper(t)
	need.Tool(t, "bwrap", "setarch", "pgrep")
	home, project := sandboxHome(t)
	must(t, os.WriteFile(filepath.Join(project, ".env"), []byte("KEY=1\n"), 0o644))
	must(t, shop.own(home))
	run := func(args ...string) (int, string) {
		args = shop.launch("4755+bwrap-old", append([]string{"setarch", "--uname-2.6", shop.sbx}, args...)...)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, args[0], args[1:]...)
		cmd.Env, cmd.Dir = shop.env(home, home), project
		out, _ := cmd.CombinedOutput()
		return cmd.ProcessState.ExitCode(), string(out)
	}
	sleep := "sleep 97." + strconv.Itoa(os.Getpid())
	for _, c := range []struct {
		args   []string
		status int
		want   string
	}{
		{[]string{"run", "--", "sh", "-c", "echo [$(cat .env)] $(ls /proc/self/fd | wc -l); (" + sleep + " &); exit 6"}, 6,
			`(?s)kernel 2\.6\.\S+: it has no mount_setattr, so bwrap builds .*landlock: this kernel has none.*\[\] 4\n`},
		{[]string{"run", "-q", "--timeout", "1s", "--", "sh", "-c", "setsid " + sleep + " & " + sleep}, 124, ""},
		{[]string{"run", "--strict", "--", "true"}, 125, "it has no mount_setattr"},
		{[]string{"run", "--no-suid", "--", "true"}, 125, "set-user-id, which --no-suid forbids"},
		{[]string{"doctor"}, 1, `(?m)^  bwrap +auto `},
		{[]string{"run", "--backend", "native", "--", "true"}, 125, // the control
			"(?s)(function not implemented|cloning).*has no mount_setattr"},
	} {
		status, out := run(c.args...)
		if status != c.status || !regexp.MustCompile(c.want).MatchString(out) {
			t.Errorf("%q: status %d, want %d and %q\n%s", c.args, status, c.status, c.want, out)
		}
	}
	if err := waitGone(sleep, time.Minute); err != nil {
		t.Error(err)
	}
}

// TestBwrapServesItsCaller: a directory that is served has its caller's rights, so nobody else inside opens or changes
// anything in it. What the caller has opened can be handed on, and what is mounted there stays and is in reach, as
// everywhere. bubblewrap, which serves nothing, is the control.
func TestBwrapServesItsCaller(t *testing.T) {
	t.Parallel()
	needSandbox(t)
	need.Root(t, "to map more than one id")
	need.Tool(t, "bwrap", "setpriv")
	const script = `cd D; cat secret; echo own >mine; echo below >new/file; chmod 755 new; exec 3<secret
setpriv --reuid 5 --regid 5 --clear-groups sh -c 'id -u; cat secret; echo x >secret; echo x >made; mkdir sub
chmod 777 secret; cat <&3; sleep 6; cat new/file' 2>&1; cat new/file`
	for _, program := range [][]string{{shop.sbx, "bwrap"}, {"bwrap"}} {
		home, project := sandboxHome(t)
		d := filepath.Join(project, "D")
		must(t, os.MkdirAll(d, 0o755))
		must(t, os.WriteFile(filepath.Join(d, "secret"), []byte("top\n"), 0o600))
		must(t, shop.own(home))
		args := append(program[1:], "--ro-bind", "/", "/", "--dev-bind", "/dev", "/dev", "--bind", d, d, "--tmpfs", d+"/new",
			"--", "sh", "-c", script)
		cmd := exec.Command(program[0], args...)
		cmd.Env, cmd.Dir = shop.env(home, home), project
		ids := func(own int) []syscall.SysProcIDMap {
			return []syscall.SysProcIDMap{{HostID: own, Size: 1}, {ContainerID: 1, HostID: 100000, Size: 100}}
		}
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER, UidMappings: ids(shop.uid),
			GidMappings: ids(shop.uid), GidMappingsEnableSetgroups: true, Credential: &syscall.Credential{}}
		out, err := cmd.CombinedOutput()
		secret, _ := os.ReadFile(filepath.Join(d, "secret"))
		_, mine := os.Stat(filepath.Join(d, "mine"))
		made, _ := filepath.Glob(filepath.Join(d, "[ms][au][db]*"))
		if err != nil || string(secret) != "top\n" || mine != nil || len(made) > 0 {
			t.Errorf("%s: %v, %v; secret %q, made %q\n%s", program, err, mine, secret, made, out)
		}
		for _, want := range []string{"(?s)^top\n5\n.*\ntop\nbelow\nbelow\n$", "(?m)^cat: secret: Permission denied$",
			"cannot create secret: Permission denied", "cannot create made: Permission denied"} {
			if !regexp.MustCompile(want).Match(out) {
				t.Errorf("%s: not %q\n%s", program, want, out)
			}
		}
	}
}
