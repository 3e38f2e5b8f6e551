//go:build linux

package confine

import (
	"errors"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/request"
	"sbx.example/sbx/broker/internal/resources"
	"sbx.example/sbx/broker/plan"
)

// asked are settings in which somebody wrote those keys.
func asked(keys ...string) request.Settings {
	s := request.Settings{}
	s.Origins = map[string][]policy.Origin{}
	for _, k := range keys {
		s.Origins[k] = []policy.Origin{{File: "/home/u/config.toml", Line: 3}}
	}
	return s
}

// TestCoreLosses: a core dump stays inside, or it is said that it does not. A limit of 0 is for files alone (core(5)).
func TestCoreLosses(t *testing.T) {
	for _, x := range []struct {
		soft    uint64
		pattern string
		want    string // of the reason; "" is no loss
	}{
		{1, "core", ""}, {0, "core", ""}, {1, "|/usr/lib/systemd/systemd-coredump %P", ""}, {1, "", ""}, {0, "", ""},
		{0, "|/usr/lib/systemd/systemd-coredump %P", "hard limit on them is 0"},
		{1, "@/run/cores", "to a socket"}, {0, "@@/run/cores", "to a socket"},
	} {
		got := CoreLosses([]plan.Limit{{Resource: unix.RLIMIT_CPU, Soft: 1}, {Resource: unix.RLIMIT_CORE, Soft: x.soft}},
			x.pattern)
		if len(got) == 0 != (x.want == "") || len(got) > 0 && (!strings.Contains(got[0].Why, x.want) || got[0].Fix == "") {
			t.Errorf("limit %d, %q: %+v, want %q", x.soft, x.pattern, got, x.want)
		}
	}
	for _, l := range Rlimits(100) {
		if l.Resource == unix.RLIMIT_CORE && (l.Soft > 1 || l.Hard > 1 || l.Soft != l.Hard) {
			t.Errorf("%+v", l)
		}
	}
}

// TestLimitLosses: a limit that somebody asked for and that does not hold is named with who asked and why; one that
// nobody asked for, or that holds, is not.
func TestLimitLosses(t *testing.T) {
	all := resources.Limits{Memory: 1 << 30, MemoryHigh: 1 << 29, Pids: 100, CPU: 50, ReadIO: 1000}
	no := errors.New("no group")
	for name, x := range map[string]struct {
		s      request.Settings
		l      resources.Limits
		holds  string
		kernel string
		want   string // the losses' names
	}{
		"nobody asked":        {asked(), all, "", "6.1", ""},
		"asked":               {asked("limits.cpu", "limits.io"), all, "", "6.1", "limits.cpu limits.io"},
		"one holds":           {asked("limits.cpu", "limits.io"), all, "cpu.max", "6.1", "limits.io"},
		"no limit":            {asked("limits.cpu"), resources.Limits{Pids: 1}, "", "6.1", ""},
		"counted by the user": {asked("limits.pids"), all, "", "5.10", "limits.pids"},
		"counted by sandbox":  {asked("limits.pids"), all, "", "6.1", ""},
		"memory":              {asked("limits.memory"), all, "", "6.1", "limits.memory"},
	} {
		in := &planner.Input{TmpSize: 1 << 40, Facts: host.Facts{Kernel: x.kernel}}
		if x.holds != "" {
			in.Controls = []plan.Control{{File: x.holds}}
		}
		limitLosses(x.s, x.l, in, func(file string) error {
			if holds(in, file) {
				return nil
			}
			return no
		})
		var got []string
		for _, l := range in.Losses {
			key, origin, _ := strings.Cut(l.What, " ")
			got = append(got, key)
			if !strings.Contains(origin, "config.toml:3") || !strings.HasPrefix(l.Why, no.Error()) || l.Fix == "" {
				t.Errorf("%s: %+v", name, l)
			}
		}
		if strings.Join(got, " ") != x.want {
			t.Errorf("%s: %q, want %q", name, got, x.want)
		}
		each := x.want == "limits.memory" // then each process has the limit, and what is in memory is within it
		if (len(in.Limits) == 1 && in.Limits[0].Name == "data" && in.TmpSize == 1<<30) != each {
			t.Errorf("%s: limits %+v, %d bytes for /tmp", name, in.Limits, in.TmpSize)
		}
	}
}

// TestFewerProcessesThanAsked: a user who may have fewer processes is told so, whatever holds the number.
func TestFewerProcessesThanAsked(t *testing.T) {
	s := asked("limits.pids")
	s.Limits.Pids = 1000
	in := &planner.Input{Facts: host.Facts{Kernel: "6.1"}}
	limitLosses(s, resources.Limits{Pids: 75}, in, func(string) error { return nil })
	if len(in.Losses) != 1 || !strings.Contains(in.Losses[0].Why, "it is 75") {
		t.Errorf("%+v", in.Losses)
	}
}

// TestMissing: before a group is made it is known which of its files would not be there.
func TestMissing(t *testing.T) {
	list := []plan.Control{{File: "memory.max"}, {File: "cpu.max"}, {File: "cpu.weight"}}
	got := missing(list, resources.Parent{Controllers: []string{"memory"}})
	if len(got) != 2 || got["cpu.max"] == nil || got["cpu.weight"] == nil {
		t.Errorf("%v", got)
	}
}

// TestIORates: rates are read for each direction; what cannot be read is named.
func TestIORates(t *testing.T) {
	for text, want := range map[string][2]uint64{"": {}, "none": {}, "50M": {50 << 20, 50 << 20}, "read=1K": {1 << 10, 0},
		"write=2K": {0, 2 << 10}, "read=1K,write=2K": {1 << 10, 2 << 10}, "write=2K,1K": {1 << 10, 1 << 10}} {
		if r, w, err := ioRates(text); err != nil || r != want[0] || w != want[1] {
			t.Errorf("%q: %d %d %v, want %v", text, r, w, err, want)
		}
	}
	for _, text := range []string{"0", "-1", "fast", "read=", "reads=1K", ",", "read=1K,", "1K;2K", "50%"} {
		if r, w, err := ioRates(text); err == nil || !strings.Contains(err.Error(), "limits.io") {
			t.Errorf("%q: %d %d %v", text, r, w, err)
		}
	}
}

// FuzzIORates: whatever is written, a limit that was asked for is a limit or an error, never none.
func FuzzIORates(f *testing.F) {
	for _, s := range []string{"", "none", "50M", "read=50M,write=10M", "read=,", "9999999999999999999G"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, w, err := ioRates(text)
		if err == nil && r == 0 && w == 0 && text != "" && text != "none" {
			t.Errorf("%q is no limit", text)
		}
	})
}
