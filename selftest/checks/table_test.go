//go:build linux

package checks

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// corpus is the attack list: prefix and how many are numbered from 1.
var corpus = []struct {
	prefix string
	n      int
}{{"FR", 39}, {"FW", 20}, {"NS", 16}, {"TT", 15}, {"NT", 23}, {"KI", 10}, {"RS", 14}, {"BP", 11}, {"HP", 20},
	{"PL", 13}, {"LC", 11}, {"NX", 3}}

func TestEveryAttackIsSomewhere(t *testing.T) {
	here := map[string]bool{}
	for _, c := range All() {
		here[c.ID] = true
	}
	tests, there := namedTests(t), map[string]bool{}
	for _, r := range elsewhere() {
		if there[r.ID] {
			t.Errorf("%s: twice in elsewhere", r.ID)
		}
		there[r.ID] = true
		if !tests[r.Test] || r.Reason == "" {
			t.Errorf("%s: %q is no test, or there is no reason", r.ID, r.Test)
		}
	}
	total := 0
	for _, p := range corpus {
		for i := 1; i <= p.n; i++ {
			id := fmt.Sprintf("%s-%02d", p.prefix, i)
			total++
			if here[id] == there[id] {
				t.Errorf("%s: in the table %v, elsewhere %v; exactly one is wanted", id, here[id], there[id])
			}
			delete(there, id)
		}
	}
	if len(there) > 0 {
		t.Errorf("not in the corpus: %v", there)
	}
	if total < 195 {
		t.Errorf("corpus has %d attacks", total)
	}
}

// namedTests are the names of all scripts and test functions.
func namedTests(t *testing.T) map[string]bool {
	named := map[string]bool{}
	function := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	err := filepath.WalkDir("../..", func(p string, e fs.DirEntry, err error) error {
		switch {
		case err != nil || e.IsDir():
		case strings.HasSuffix(p, ".txtar"):
			named[e.Name()] = true
		case strings.HasSuffix(p, "_test.go"):
			text, err := os.ReadFile(p)
			for _, m := range function.FindAllSubmatch(text, -1) {
				named[string(m[1])] = true
			}
			return err
		}
		return err
	})
	if err != nil || !named["host_mounts.txtar"] || !named["TestTableIsSound"] {
		t.Fatal("looking for tests:", err)
	}
	return named
}

func TestTableIsSound(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range All() {
		if seen[c.ID] {
			t.Errorf("%s: twice", c.ID)
		}
		seen[c.ID] = true
		for field, v := range map[string]string{"Title": c.Title, "Tries": c.Tries, "Must": c.Must, "Layer": c.Layer,
			"Act": c.Act} {
			if v == "" {
				t.Errorf("%s: no %s", c.ID, field)
			}
		}
		if !slices.Contains(Groups(), c.Group) {
			t.Errorf("%s: unknown group %q", c.ID, c.Group)
		}
		if len(c.Want) == 0 {
			t.Errorf("%s: no acceptable outcome", c.ID)
		}
		k := c.Control
		if ways := len(k.Off) > 0 || k.Options != nil || k.Host; ways == (k.None != "") {
			t.Errorf("%s: needs a way to switch the layer off, or a reason why there is none", c.ID)
		}
		if (k.NS != "" || k.Args != nil || k.Drop) && !k.Host {
			t.Errorf("%s: NS, Args and Drop are for controls on the host", c.ID)
		}
		if slices.Contains(c.Want, "OK") && k.None == "" {
			t.Errorf("%s: a control cannot show anything where success is acceptable", c.ID)
		}
	}
}

// A control on the host must not be able to do harm: sweeps without capabilities, writes below the lab only.
func TestHostControlsAreHarmless(t *testing.T) {
	writes := []string{"append", "modify", "linkwrite", "plant", "fill", "inodes", "openwrite", "hardlink", "suidbits",
		"secxattr", "moveaway", "ancestor", "bindsock", "cgroupfs", "ioctls"}
	safe := []string{"{HOME}", "{PROJ}", "{PROJ2}", "{RO}", "{RODIR}", "{LAB}", "{OTHER}", "{SECRET}", "{RUN}",
		"/proc/{HPID}/"}
	for _, c := range All() {
		if !c.Control.Host {
			continue
		}
		if slices.Contains([]string{"sweep", "nestedsweep", "clocks", "bpf"}, c.Act) && !c.Control.Drop {
			t.Errorf("%s: must not run on the host with privileges", c.ID)
		}
		if slices.Contains([]string{"mounts", "newmounts", "nsflags", "setns", "ids", "secxattr"}, c.Act) &&
			c.Control.NS == "" {
			t.Errorf("%s: must run in a namespace of its own", c.ID)
		}
		if slices.Contains([]string{"egress", "rawsock", "udp"}, c.Act) && c.Control.NS != "net" {
			t.Errorf("%s: must run in a network namespace of its own", c.ID)
		}
		if c.Act == "signals" && slices.Contains(c.Control.Args, "init") {
			t.Errorf("%s: must not signal the host's init", c.ID)
		}
		args := c.Control.Args
		if args == nil {
			args = c.Args
		}
		for _, a := range args {
			inLab := !strings.HasPrefix(a, "/") && !strings.HasPrefix(a, "{") ||
				slices.ContainsFunc(safe, func(p string) bool { return strings.HasPrefix(a, p) })
			if slices.Contains(writes, c.Act) && !inLab {
				t.Errorf("%s: %s would change %s on the host", c.ID, c.Act, a)
			}
		}
	}
}

func TestEveryActExists(t *testing.T) {
	out, err := exec.Command(buildProbe(t), "list").Output()
	if err != nil {
		t.Fatalf("asking the probe for its acts: %v", err)
	}
	var acts []string
	if err := json.Unmarshal(out, &acts); err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{"victim": true}
	for _, c := range All() {
		used[c.Act] = true
		if !slices.Contains(acts, c.Act) {
			t.Errorf("%s: the probe has no act %q", c.ID, c.Act)
		}
	}
	for _, a := range acts {
		if !used[a] {
			t.Errorf("no check uses the act %q", a)
		}
	}
}

func TestEveryPlaceholderIsKnown(t *testing.T) {
	l := &lab{root: "/lab"}
	for _, c := range All() {
		all := slices.Concat(c.Args, c.Options, c.Control.Args, c.Control.Options, []string{c.Dir})
		for _, s := range c.Setup {
			all = append(all, s.Path, s.Text)
		}
		for _, s := range c.During {
			all = append(all, s.From, s.To)
		}
		for _, v := range c.After {
			all = append(all, v.Path)
		}
		for _, s := range all {
			if p := strings.ReplaceAll(l.path(s), "{READY}", ""); strings.ContainsAny(p, "{}") {
				t.Errorf("%s: unknown placeholder in %q", c.ID, s)
			}
		}
	}
}
