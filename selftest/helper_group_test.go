//go:build linux

package selftest

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/shared/wire"
)

// groupFlag makes the test's own binary a process that asks sbx-helper for control groups, under one of orgCases, and
// tries what it may do then: "-group-helper NAME UID".
const groupFlag = "-group-helper"

// How the helper is asked for control groups.
const (
	asLeader = 1 + iota // as sbx does
	noLeader            // from a process group that is not the caller's number
	ofRoot              // its parent is root's, of the user are the socket and the helper
)

const hierarchy = "/sys/fs/cgroup"

// groupCases are the states of helper.toml that are about control groups. What is refused leaves everybody where they
// were.
func groupCases() []orgCase {
	return []orgCase{
		{name: "groups", text: "cgroups = \"\"\n", group: asLeader},
		{name: "groups-unnamed", text: "veth = true\n", group: asLeader, reason: wire.OrgRefuses, where: -3},
		{name: "groups-of-others", text: "allow_uids = [1]\ncgroups = \"\"\n", group: asLeader, reason: wire.OrgRefuses,
			where: -3},
		{name: "groups-ceiling", text: "cgroups = \"nothing.max 1\" # no such file\n", group: asLeader,
			reason: wire.NotGrouped},
		{name: "groups-ceiling-value", text: "cgroups = \"cgroup.max.depth 9, cgroup.max.descendants many\"\n",
			group: asLeader, reason: wire.NotGrouped},
		{name: "groups-ceilings", text: "cgroups = \"cgroup.max.depth 9, cgroup.max.descendants 90\"\n", group: asLeader},
		{name: "groups-no-leader", text: "cgroups = \"\"\n", group: noLeader, reason: wire.WrongCaller, where: 1},
		{name: "groups-of-root", text: "cgroups = \"\"\n", group: ofRoot, reason: wire.WrongCaller, where: 1},
		{name: "groups-unquoted", text: "cgroups = pids.max 5\n", reason: wire.OrgFile},
	}
}

// noGroups is the fact that is missing where version 2 control groups cannot be mounted or made, which no package
// changes.
const noGroups = "version 2 control groups that root may make groups in"

// placeGroups mounts the hierarchy where the helper looks for it.
func placeGroups() error {
	err := unix.Mount("none", hierarchy, "cgroup2", 0, "")
	if err == nil {
		err = os.Mkdir(hierarchy+"/sbx-selftest", 0o755)
	}
	if err != nil && !os.IsExist(err) {
		return fmt.Errorf("%s (%w)", noGroups, err)
	}
	_ = os.Remove(hierarchy + "/sbx-selftest")
	return nil
}

// groupsOf has a process of its own ask, and waits until nothing is left of what was made for it.
func groupsOf(c orgCase, uid int) (res result) {
	cmd := exec.Command("/proc/self/exe", groupFlag, c.name, strconv.Itoa(uid))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if e := json.Unmarshal(out, &res); e != nil || err != nil {
		res.Wrong = fmt.Sprintf("%v, %v: %s", err, e, out)
	}
	for begin := time.Now(); time.Since(begin) < time.Minute; time.Sleep(20 * time.Millisecond) {
		if _, err := os.Stat(hierarchy + "/sbx/" + strconv.Itoa(uid)); os.IsNotExist(err) {
			return res
		}
	}
	res.Wrong += " the groups are left"
	return res
}

// place is the control group of a process.
func place(pid string) string {
	b, _ := os.ReadFile("/proc/" + pid + "/cgroup")
	_, p, _ := strings.Cut("\n"+string(b), "\n0::")
	p, _, _ = strings.Cut(p, "\n")
	return p
}

// askForGroups starts the helper and takes in its one message.
func askForGroups(how, uid int) (res result, proc *os.Process, err error) {
	pair, err := socketsOf(map[bool]int{true: uid}[how == ofRoot])
	if err != nil {
		return res, nil, err
	}
	defer unix.Close(pair[0])
	end, null := os.NewFile(uintptr(pair[1]), "wire"), os.NewFile(0, "null")
	attr := &os.ProcAttr{Dir: "/", Files: []*os.File{end, null, null}, Sys: &syscall.SysProcAttr{Setpgid: how == noLeader}}
	if how == ofRoot {
		attr.Sys.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}
	}
	proc, err = os.StartProcess(argv0, []string{argv0, "group"}, attr)
	end.Close()
	if err == nil {
		listen(pair[0], &res, nil)
	}
	return res, proc, err
}

func groupCaller(name, id string) int {
	c := findOrg(name)
	uid, _ := strconv.Atoi(id)
	before, outside := place("self"), place(strconv.Itoa(os.Getppid()))
	res, proc, err := askForGroups(c.group, uid)
	res.Name = name
	wrong := func(format string, a ...any) { res.Wrong += fmt.Sprintf(format, a...) + "; " }
	user := hierarchy + "/sbx/" + id
	switch {
	case err != nil:
		wrong("%v", err)
	case res.Reason != c.reason || res.Where != c.where:
		wrong("refused for %d at %d, want %d at %d", res.Reason, res.Where, c.reason, c.where)
	case c.reason != 0 && place("self") != before:
		wrong("refused and moved to %s", place("self"))
	case c.reason != 0:
		_, _ = proc.Wait()
	case place("self") != "/sbx/"+id+"/own/sbx":
		wrong("is in %s", place("self"))
	default:
		tryGroups(user, outside, wrong)
		if again, second, err := askForGroups(c.group, uid); err != nil || again.Reason != 0 {
			wrong("the second time: %v, %d", err, again.Reason)
		} else if state, err := second.Wait(); err != nil || !state.Success() { // the first one waits for the end
			wrong("the second helper: %v, %v", state, err)
		}
	}
	if b, _ := os.ReadFile(user + "/cgroup.max.depth"); c.name == "groups-ceilings" && string(b) != "9\n" {
		wrong("the ceiling is %q", b)
	}
	_ = json.NewEncoder(os.Stdout).Encode(res)
	return 0
}

// tryGroups does what the caller may now, and tries what it may not.
func tryGroups(user, outside string, wrong func(string, ...any)) {
	put := func(file, text string) error {
		f, err := os.OpenFile(file, os.O_WRONLY, 0)
		if err == nil {
			_, err = f.WriteString(text)
			f.Close()
		}
		return err
	}
	self, parent := strconv.Itoa(os.Getpid()), strconv.Itoa(os.Getppid())
	may := map[string]error{"make one": os.Mkdir(user+"/own/mine", 0o755), "move its own": put(user+
		"/own/mine/cgroup.procs", self)}
	for what, err := range may {
		if err != nil {
			wrong("it may not %s: %v", what, err)
		}
	}
	if err := put(user+"/own/sbx/cgroup.procs", self); err != nil {
		wrong("it may not move back: %v", err)
	}
	for begin := time.Now(); os.Remove(user+"/own/mine") != nil &&
		time.Since(begin) < 20*time.Second; time.Sleep(time.Millisecond) {
		// a thread that was just ending may still be there
	}
	for what, err := range map[string]error{
		"make one beside": os.Mkdir(user+"/mine", 0o755), "make one above": os.Mkdir(hierarchy+"/sbx/mine", 0o755),
		"leave the ceilings": put(user+"/cgroup.procs", self), "leave all": put(hierarchy+"/cgroup.procs", self),
		"lift a ceiling": put(user+"/cgroup.max.depth", "max"),
		"hand down":      put(user+"/cgroup.subtree_control", ""), "kill": put(user+"/cgroup.kill", "1"),
		"freeze":               put(user+"/cgroup.freeze", "1"),
		"remove its own place": os.Remove(user + "/own"), "move another one in": put(user+"/own/sbx/cgroup.procs", parent),
		"open its way": os.Chmod(user, 0o777), "kill all": put(filepath.Dir(user)+"/cgroup.kill", "1"),
	} {
		// cgroup.kill is new
		if err == nil || !os.IsPermission(err) && !os.IsNotExist(err) && !strings.Contains(err.Error(), "busy") {
			wrong("it may %s: %v", what, err)
		}
	}
	if now := place(parent); now != outside {
		wrong("another process was moved to %s", now)
	}
}
