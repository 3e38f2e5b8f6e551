//go:build linux

package resources

import (
	"os"
	"strconv"
	"strings"
	"time"
)

func (g *Group) text(file string) string {
	b, _ := os.ReadFile(g.Dir + "/" + file)
	return strings.TrimSpace(string(b))
}

// number reads a file of one number; "max" is 0.
func (g *Group) number(file string) int64 {
	n, _ := strconv.ParseInt(g.text(file), 10, 64)
	return n
}

// keyed reads a value of a file of "key value" lines.
func keyed(text, key string) int64 {
	for line := range strings.Lines(text) {
		if k, v, ok := strings.Cut(strings.TrimSpace(line), " "); ok && k == key {
			n, _ := strconv.ParseInt(v, 10, 64)
			return n
		}
	}
	return 0
}

// Usage reads what the group uses now. What a controller is missing for stays 0.
func (g *Group) Usage() Usage {
	cpu := g.text("cpu.stat")
	kills, hit := g.hits()
	u := Usage{Time: time.Now(), CPUUsec: keyed(cpu, "usage_usec"), ThrottledUsec: keyed(cpu, "throttled_usec"),
		Memory: g.number("memory.current"), MemoryMax: g.number("memory.max"), MemoryPeak: g.number("memory.peak"),
		Pids: g.number("pids.current"), PidsMax: g.number("pids.max"), OOMKills: kills, PidsHit: hit}
	if u.Pids == 0 {
		u.Pids = int64(len(g.Pids()))
	}
	for line := range strings.Lines(g.text("memory.pressure")) {
		f := strings.Fields(line)
		if len(f) > 1 && f[0] == "some" {
			u.MemoryPressure, _ = strconv.ParseFloat(strings.TrimPrefix(f[1], "avg10="), 64)
		}
	}
	for line := range strings.Lines(g.text("io.stat")) {
		for _, f := range strings.Fields(line) {
			k, v, _ := strings.Cut(f, "=")
			n, _ := strconv.ParseInt(v, 10, 64)
			switch k {
			case "rbytes":
				u.ReadB += n
			case "wbytes":
				u.WriteB += n
			}
		}
	}
	return u
}
