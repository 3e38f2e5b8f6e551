//go:build linux

package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// least is how many percent of each room that sbx-helper shares with sbx it must hold: what only sbx needs has rooms of
// its own, so that who reads a room reads what runs with privileges.
const least = 90

// most is what sbx-helper may hold: to take more in is a decision.
const most = 2890

// TestPrograms: each of the two set-user-id programs is within the size that the design gives a privileged text, and
// does not hold what is the other's.
func TestPrograms(t *testing.T) {
	t.Chdir("../..")
	goals := [len(programs)]int{2000, 1220, 2640}
	foreign := [len(programs)][]string{{"helper/net.go", "helper/netrules.go", "helper/group.go", "shared/rtnl/conn.go"},
		{"helper/permitted.go", "shared/stage/mounts.go", "shared/stage/direct.go"}}
	for i, p := range programs {
		out := filepath.Join(t.TempDir(), p.name)
		if err := build(p.tag, out); err != nil {
			t.Fatal(err)
		}
		counts, err := countAll(out)
		if err != nil {
			t.Fatal(err)
		}
		by, err := sums(out)
		if err != nil {
			t.Fatal(err)
		}
		if t.Logf("%s: %d lines, by privilege %v", p.name, privileged(by), by); privileged(by) > goals[i] ||
			counts["helper/main.go"] == 0 {
			t.Errorf("%s has %d privileged lines, want at most %d", p.name, privileged(by), goals[i])
		}
		for _, f := range foreign[i] {
			if counts[f] > 0 {
				t.Errorf("%s holds %d lines of %s", p.name, counts[f], f)
			}
		}
	}
}

// TestGoSpecifics: packages that read files, environment or names of their own accord are not in the helper. os, which
// it needs, is the control.
func TestGoSpecifics(t *testing.T) {
	t.Chdir("../..")
	out, err := exec.Command("go", "list", "-deps", "./helper").Output()
	if err != nil {
		t.Fatal(err)
	}
	deps := strings.Fields(string(out))
	for _, p := range [...]string{"net", "os/user", "os/exec", "log", "log/slog", "flag", "plugin", "runtime/cgo"} {
		if slices.Contains(deps, p) {
			t.Errorf("the helper holds package %s", p)
		}
	}
	if !slices.Contains(deps, "os") {
		t.Errorf("no package os in %q", deps)
	}
}

// TestAfterLeave: what loop_unsafe.go has is called by itself only, but for the one call in launchDirect, which comes
// after the tape that ends with every privilege given up (letGo). So it is right to count it apart.
func TestAfterLeave(t *testing.T) {
	t.Chdir("../../shared/stage")
	fset := token.NewFileSet()
	parse := func(name string) *ast.File {
		t.Helper()
		f, err := parser.ParseFile(fset, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	own := map[string]bool{}
	for _, d := range parse("loop_unsafe.go").Decls {
		if fn, ok := d.(*ast.FuncDecl); ok {
			own[fn.Name.Name] = true
		}
	}
	if !own["StartProgram"] || !own["Reap"] || !own["AfterLeave"] {
		t.Fatalf("loop_unsafe.go has %v", own)
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	helper, err := filepath.Glob("../../helper/*.go")
	if err != nil || len(helper) == 0 {
		t.Fatal(helper, err)
	}
	var found []string
	for _, name := range append(files, helper...) {
		if name == "loop_unsafe.go" || strings.HasSuffix(name, "_test.go") {
			continue
		}
		for _, d := range parse(name).Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			tape := false // it has been carried out, or process 1 has stopped
			ast.Inspect(fn, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok {
					return true
				}
				name := called(call)
				tape = tape || name == "tape.Run"
				if own[strings.TrimPrefix(name, "stage.")] {
					found = append(found, fn.Name.Name+" calls "+name)
					if !tape {
						t.Errorf("%s calls %s before it has carried out a tape", fn.Name.Name, name)
					}
				}
				return true
			})
		}
	}
	if len(found) != 1 || found[0] != "launchDirect calls AfterLeave" {
		t.Errorf("%q, want one call by launchDirect", found)
	}
}

// called is the function that a call names, with its package.
func called(call *ast.CallExpr) string {
	switch f := call.Fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		if x, ok := f.X.(*ast.Ident); ok {
			return x.Name + "." + f.Sel.Name
		}
	}
	return ""
}

// notInHelper are the files of shared of which nothing may run with privilege.
var notInHelper = [...]string{"tape/cgroup_unsafe.go"}

// TestHelperHolds: what is not for the helper is really not in it. What must be there is the control.
func TestHelperHolds(t *testing.T) {
	t.Chdir("../..")
	bin := filepath.Join(t.TempDir(), "bin")
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-E=sbx_helper_start", "-o", bin,
		"./helper")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	hit, err := lines(bin)
	if err != nil {
		t.Fatal(err)
	}
	sum := 0
	for file, at := range hit {
		n, err := count(file, at)
		if err != nil {
			t.Fatal(err)
		}
		sum += n
	}
	if t.Logf("%d lines", sum); sum > most || hit["helper/permitted.go"] == nil || hit["shared/stage/mounts.go"] == nil {
		t.Errorf("the helper holds %d lines of %d files, want at most %d", sum, len(hit), most)
	}
	counts, err := countAll(bin)
	if err != nil {
		t.Fatal(err)
	}
	for _, room := range rooms {
		held, whole, err := share(room, counts)
		if err != nil {
			t.Fatal(err)
		}
		if t.Logf("%d of %d lines of %s", held, whole, room); 100*held < least*whole {
			t.Errorf("the helper holds %d of %d lines of %s, want %d %%", held, whole, room, least)
		}
	}
	for _, f := range notInHelper {
		if _, err := os.Stat("shared/" + f); err != nil || hit["shared/"+f] != nil {
			t.Errorf("the helper holds some of shared/%s, or there is no such file: %v", f, err)
		}
	}
}
