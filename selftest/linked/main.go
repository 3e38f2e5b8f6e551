//go:build linux

// Command linked counts the lines of this module's own source that a built program really holds, by the table of
// functions and lines in its file; what was inlined counts as well. It must not guess: what it counts is in the
// program. make audit-helper runs it on bin/sbx-helper.
package main

import (
	"bufio"
	"debug/elf"
	"debug/gosym"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"runtime/debug"
	"sort"
	"strings"
)

// module is how the paths of this module's packages and files begin, in a program that was built from it.
func module() string {
	info, _ := debug.ReadBuildInfo()
	return info.Main.Path + "/"
}

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr,
			"usage: linked PROGRAM [FILE...] (in the module's folder; the files are listed first, in this order)\n"+
				"       linked -suid (how much of the helper's programs runs with which privilege)")
		os.Exit(2)
	}
	err := error(nil)
	if os.Args[1] == "-suid" {
		err = printPrograms()
	} else {
		err = run(os.Args[1], os.Args[2:])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "linked:", err)
		os.Exit(1)
	}
}

func run(program string, first []string) error {
	counts, err := countAll(program)
	if err != nil {
		return err
	}
	var rest []string
	for file := range counts {
		if !contains(first, file) {
			rest = append(rest, file)
		}
	}
	sort.Strings(rest)
	sum := 0
	for _, file := range append(first, rest...) {
		whole, err := count(file, nil)
		if err != nil {
			return err
		}
		sum += counts[file]
		fmt.Printf("%5d of %4d  %5d  %-7s %s\n", counts[file], whole, sum, tiers[tierOf(file)].short, file)
	}
	fmt.Printf("%5d lines that are neither empty nor comment are in %s\n", sum, program)
	for _, room := range rooms {
		held, whole, err := share(room, counts)
		if err != nil {
			return err
		}
		fmt.Printf("%5d of %4d lines of %s are in it: %d %% are not\n", held, whole, room, 100*(whole-held)/whole)
	}
	return nil
}

// rooms are the packages that the program shares with sbx.
var rooms = [...]string{"shared/tape", "shared/stage", "shared/wire", "shared/plan"}

// share says how many lines of a package are in the program, of how many.
func share(room string, counts map[string]int) (held, whole int, err error) {
	list, err := os.ReadDir(room)
	for _, e := range list {
		file := room + "/" + e.Name()
		if strings.HasSuffix(file, "_test.go") || !strings.HasSuffix(file, ".go") && !strings.HasSuffix(file, "_amd64.s") {
			continue
		}
		n, err := count(file, nil)
		if err != nil {
			return 0, 0, err
		}
		held, whole = held+counts[file], whole+n
	}
	return held, whole, err
}

// countAll says how many lines of each file are in the program.
func countAll(program string) (map[string]int, error) {
	hit, err := lines(program)
	counts := map[string]int{}
	for file, at := range hit {
		if counts[file], err = count(file, at); err != nil {
			return nil, err
		}
	}
	return counts, err
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

// lines returns, for every file of the module, which of its lines have code in the program.
func lines(program string) (map[string]map[int]bool, error) {
	f, err := elf.Open(program)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	tab, text := f.Section(".gopclntab"), f.Section(".text")
	if tab == nil || text == nil {
		return nil, fmt.Errorf("%s has no table of lines", program)
	}
	data, err := tab.Data()
	if err != nil {
		return nil, err
	}
	t, err := gosym.NewTable(nil, gosym.NewLineTable(data, text.Addr))
	if err != nil {
		return nil, err
	}
	hit, own := map[string]map[int]bool{}, module()
	for i := range t.Funcs {
		fn := &t.Funcs[i]
		// ours is inlined in ours only
		if !strings.HasPrefix(fn.Name, own) && !strings.HasPrefix(fn.Name, "main.") && strings.Contains(fn.Name, ".") {
			continue
		}
		for pc := fn.Entry; pc < fn.End; pc++ {
			file, line, _ := t.PCToLine(pc)
			if rel, ok := strings.CutPrefix(file, own); ok {
				if hit[rel] == nil {
					hit[rel] = map[int]bool{}
				}
				hit[rel][line] = true
			}
		}
	}
	return hit, nil
}

// count returns the lines of file that are neither empty nor comment and belong to a function that has a line in at, or
// to no function at all: types, constants, variables. With at nil it counts every line.
func count(file string, at map[int]bool) (int, error) {
	f, err := os.Open(filepath.FromSlash(file))
	if err != nil {
		return 0, err
	}
	defer f.Close()
	dead := map[int]bool{}
	if strings.HasSuffix(file, ".go") && at != nil {
		fset := token.NewFileSet()
		tree, err := parser.ParseFile(fset, file, nil, 0)
		if err != nil {
			return 0, err
		}
		for _, d := range tree.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			from, to := fset.Position(fn.Pos()).Line, fset.Position(fn.End()).Line
			linked := false
			for l := from; l <= to; l++ {
				linked = linked || at[l]
			}
			for l := from; l <= to && !linked && fn.Body != nil; l++ {
				dead[l] = true
			}
		}
	}
	n, s := 0, bufio.NewScanner(f)
	for line := 1; s.Scan(); line++ {
		text := strings.TrimSpace(s.Text())
		if text != "" && !strings.HasPrefix(text, "//") && !dead[line] {
			n++
		}
	}
	return n, s.Err()
}
