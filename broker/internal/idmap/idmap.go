//go:build linux

// Package idmap gives a sandbox the subordinate ids of its user (subuid(5)), so that containers inside can have users
// of their own. The maps of the sandbox are written by newuidmap(1) and newgidmap(1) outside, where they may be
// set-user-id; inside, where nothing gains privileges, programs of the same names (Client) ask the broker (Server),
// which writes the maps of namespaces below the sandbox's and of no others.
package idmap

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"sbx.example/sbx/broker/internal/program"
)

// Range is Count ids from First on.
type Range struct{ First, Count uint32 }

// Ids are the subordinate ids of one user.
type Ids struct{ UIDs, GIDs []Range }

// Names of the two programs, outside and inside.
const (
	UIDTool = "newuidmap"
	GIDTool = "newgidmap"
)

// maxRanges is how many ranges of one file are used.
const maxRanges = 16

// Parse reads the ranges of a user, by name or number, from the text of /etc/subuid or /etc/subgid. own is left out of
// them: it is mapped anyway. The ranges come in order and do not overlap.
func Parse(text, name string, uid, own uint32) []Range {
	var out []Range
	for line := range strings.SplitSeq(text, "\n") {
		f := strings.Split(strings.TrimSpace(line), ":")
		if len(f) != 3 || f[0] == "" || f[0] != name && f[0] != strconv.FormatUint(uint64(uid), 10) {
			continue
		}
		first, err := strconv.ParseUint(f[1], 10, 32)
		count, err2 := strconv.ParseUint(f[2], 10, 32)
		if err != nil || err2 != nil || first == 0 || count == 0 || first+count > 1<<32-1 || uint64(own) >= first &&
			uint64(own) < first+count {
			continue
		}
		out = append(out, Range{uint32(first), uint32(count)})
	}
	slices.SortFunc(out, func(a, b Range) int { return int(int64(a.First) - int64(b.First)) })
	kept := out[:0]
	for _, r := range out {
		if n := len(kept); n < maxRanges && (n == 0 || kept[n-1].First+kept[n-1].Count <= r.First) {
			kept = append(kept, r)
		}
	}
	return kept
}

// Read returns the user's subordinate ids, or why there are none that could be used.
func Read(name string, uid, gid uint32) (Ids, error) {
	var ids Ids
	for _, x := range []struct {
		file string
		own  uint32
		list *[]Range
	}{{"/etc/subuid", uid, &ids.UIDs}, {"/etc/subgid", gid, &ids.GIDs}} {
		b, err := os.ReadFile(x.file)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return Ids{}, fmt.Errorf("reading %s: %w", x.file, errors.Unwrap(err))
		}
		if *x.list = Parse(string(b), name, uid, x.own); len(*x.list) == 0 {
			return Ids{}, fmt.Errorf("%s has no line for %s", x.file, name)
		}
	}
	for _, tool := range []string{UIDTool, GIDTool} {
		if _, err := Tool(tool); err != nil {
			return Ids{}, err
		}
	}
	return ids, nil
}

// Advice is the command that gives a user subordinate ids which nobody else has.
func Advice(name string) string {
	first := uint64(100000)
	for _, file := range []string{"/etc/subuid", "/etc/subgid"} {
		b, _ := os.ReadFile(file)
		first = max(first, after(string(b)))
	}
	return fmt.Sprintf("usermod --add-subuids %d-%d --add-subgids %[1]d-%[2]d %s", first, first+65535, name)
}

// after is the first id above all that the text gives away.
func after(text string) (first uint64) {
	for line := range strings.SplitSeq(text, "\n") {
		if f := strings.Split(strings.TrimSpace(line), ":"); len(f) == 3 {
			begin, err := strconv.ParseUint(f[1], 10, 32)
			count, err2 := strconv.ParseUint(f[2], 10, 32)
			if err == nil && err2 == nil {
				first = max(first, begin+count)
			}
		}
	}
	return first
}

// Tool finds one of the two programs where distributions install it, never in a place of the user's.
func Tool(name string) (program.Program, error) { return program.Source{}.Find(name) }

// Own is the caller's own id, and what it is in the namespace.
type Own struct{ Inside, Outside uint32 }

// Map gives the new user namespace of the process pid the caller's own ids and the subordinate ones under their own
// numbers.
func (ids Ids) Map(pid int, uid, gid Own) error {
	for _, x := range []struct {
		tool string
		own  Own
		list []Range
	}{{UIDTool, uid, ids.UIDs}, {GIDTool, gid, ids.GIDs}} {
		args := append([]string{strconv.Itoa(pid)}, strings.Fields(Text(x.own, x.list))...)
		tool, err := Tool(x.tool)
		if err != nil {
			return err
		}
		cmd := tool.Command(args...)
		var out bytes.Buffer
		cmd.Stderr = &out
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("%s: %s", x.tool, firstLine(out.String(), err))
		}
	}
	return nil
}

func firstLine(text string, err error) string {
	if line, _, _ := strings.Cut(strings.TrimSpace(text), "\n"); line != "" {
		return line
	}
	return err.Error()
}

// Text is the map of one's own id and the ranges, as the kernel and the programs want it.
func Text(own Own, list []Range) string {
	out := fmt.Sprintf("%d %d 1", own.Inside, own.Outside)
	for _, r := range list {
		out += fmt.Sprintf("\n%d %d %d", r.First, r.First, r.Count)
	}
	return out
}
