//go:build linux

package selftest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// privilegedText are the files of which something runs with privilege (selftest/linked counts them from the programs'
// own tables).
func privilegedText(t *testing.T) []string {
	t.Helper()
	list, err := filepath.Glob("../helper/*.go")
	if err != nil || len(list) == 0 {
		t.Fatal("no text of the helper's", err)
	}
	for _, f := range []string{"wire/wire.go", "wire/report.go", "rtnl/conn.go", "stage/direct.go",
		"stage/direct_unsafe.go", "stage/clone.go", "stage/compile.go", "stage/mounts.go",
		"stage/confine.go", "stage/control_unsafe.go", "tape/run_unsafe.go", "tape/arena_unsafe.go", "tape/memory_unsafe.go",
		"tape/tape.go"} {
		list = append(list, "../shared/"+f)
	}
	return list
}

// callNames are functions of the two packages that are named otherwise than the call that they make, and those that
// make none.
var callNames = [...]struct{ function, call string }{
	{"Access", "access"}, {"AllThreadsSyscall", ""}, {"ByteSliceToString", ""}, {"CmsgLen", ""}, {"CmsgSpace", ""},
	{"Exec", "execve"}, {"Exit", "exit_group"},
	{"FcntlFlock", "fcntl"}, {"FcntlInt", "fcntl"}, {"Getrlimit", "prlimit64"}, {"GetsockoptInt", "getsockopt"},
	{"GetsockoptUcred", "getsockopt"}, {"IoctlGetUint32", "ioctl"}, {"IoctlRetInt", "ioctl"},
	{"Major", ""}, {"Minor", ""}, {"Mkdev", ""}, {"NsecToTimeval", ""}, {"ParseSocketControlMessage", ""},
	{"ParseUnixRights", ""}, {"RawSyscall", ""}, {"RawSyscall6", ""},
	{"SetfsgidRetGid", "setfsgid"}, {"SetfsuidRetUid", "setfsuid"}, {"SetsockoptTimeval", "setsockopt"}, {"Syscall6", ""},
	{"UnixRights", ""},
	{"PidfdSendSignal", "pidfd_send_signal"}, {"PidfdOpen", "pidfd_open"}, {"CloseRange", "close_range"}, {"Errno", ""},
}

func callOf(function string) string {
	for _, c := range callNames {
		if c.function == function {
			return c.call
		}
	}
	return strings.ToLower(function)
}

// callsInSource are the system calls that a file names, as functions of the two packages, as numbers, or in assembly's
// comments.
func callsInSource(t *testing.T, file string) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	ofKernel := func(e ast.Expr) (string, bool) {
		sel, ok := e.(*ast.SelectorExpr)
		if !ok {
			return "", false
		}
		x, ok := sel.X.(*ast.Ident)
		return sel.Sel.Name, ok && (x.Name == "unix" || x.Name == "syscall")
	}
	ast.Inspect(tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			if name, ok := ofKernel(n.Fun); ok && ast.IsExported(name) && callOf(name) != "" {
				out[callOf(name)] = true
			}
		case *ast.SelectorExpr:
			if name, ok := ofKernel(n); ok {
				if nr, ok := strings.CutPrefix(name, "SYS_"); ok {
					out[strings.ToLower(nr)] = true
				}
			}
		}
		return true
	})
	return out
}

// callRows are the calls that the table in helper/README.md has a row for.
func callRows(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("../helper/README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(text), "\n## Every call that is made with privilege\n")
	section, _, ok2 := strings.Cut(section, "\n## ")
	if !ok || !ok2 {
		t.Fatal("the table of calls is not where it was")
	}
	var rows []string
	for line := range strings.Lines(section) {
		cells := strings.Split(line, "|")
		if len(cells) != 6 || strings.HasPrefix(line, "|---") || strings.TrimSpace(cells[1]) == "call" {
			continue
		}
		for _, c := range cells[2:5] {
			if strings.TrimSpace(c) == "" {
				t.Errorf("an empty cell in %q", line)
			}
		}
		for name := range strings.SplitSeq(cells[1], ",") {
			rows = append(rows, strings.TrimSpace(name))
		}
	}
	return rows
}

// TestHelperCallsHaveRows: whoever makes a system call with privilege says whose rights the kernel asks for, and what
// the caller can change then.
func TestHelperCallsHaveRows(t *testing.T) {
	rows, made := callRows(t), map[string]string{}
	for _, file := range privilegedText(t) {
		for name := range callsInSource(t, file) {
			made[name] = file
		}
	}
	for _, file := range []string{"../helper/entry_amd64.s", "../helper/entry_arm64.s"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		found := regexp.MustCompile(`(?m)^\tMOV[QD]\t\$[0-9]+, (?:AX|R8) // ([a-z0-9_]+)`).FindAllStringSubmatch(
			string(text), -1)
		if len(found) != 8 {
			t.Errorf("%s makes %d calls that are named, want 8", file, len(found))
		}
		for _, m := range found {
			made[m[1]] = file
		}
	}
	if len(made) < 60 || made["open_tree"] == "" || made["setresgid"] == "" {
		t.Fatalf("%d calls were found: %v", len(made), made)
	}
	for _, name := range slices.Sorted(maps.Keys(made)) {
		if !slices.Contains(rows, name) {
			t.Errorf("%s, in %s, has no row in helper/README.md", name, made[name])
		}
	}
	for i, name := range rows {
		if made[name] == "" || slices.Contains(rows[:i], name) {
			t.Errorf("helper/README.md has a row for %s, which nobody makes, or two", name)
		}
	}
}
