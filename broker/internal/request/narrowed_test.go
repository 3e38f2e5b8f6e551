package request

import (
	"reflect"
	"strings"
	"testing"
)

// TestNarrowed: nothing but what takes away is taken, and the session's own request stays as it is.
func TestNarrowed(t *testing.T) {
	r := &Request{Mode: "dynamic"}
	if _, err := r.Parse(strings.Fields("--rw /a --hide /b --allow-network --with x --keep true")); err != nil {
		t.Fatal(err)
	}
	r.Paths, r.Hide = append(make([]pathOption, 0, 9), r.Paths...), append(make([]string, 0, 9), r.Hide...)
	before := *r
	n, words, err := r.Narrowed("spawn", "/p", []string{"--read-only", "--hide", "/c", "--no-network", "--", "sh", "--rw"})
	if err != nil || strings.Join(words, " ") != "sh --rw" || len(n.Paths) != 2 || n.Paths[1].Path != "/p" ||
		strings.Join(n.Hide, " ") != "/b /c" || n.net != "none" || n.Mode != "static" || !n.AllowNetwork || n.Keep ||
		len(n.with) != 1 || !n.Beside() || !n.ToolsStay(Settings{}) {
		t.Errorf("%+v, %q, %v", n, words, err)
	}
	if !reflect.DeepEqual(before, *r) || len(r.Hide[:2][1]) > 0 || r.Paths[:2][1].Path != "" {
		t.Errorf("the session's request is %+v", r)
	}
	again := &Request{}
	for _, o := range again.Options() {
		if word := "--" + o.Name; o.Arg == "" && o.Name != "ephemeral" && o.Name != "no-network" {
			if _, _, err := r.Narrowed("spawn", "/p", []string{word, "true"}); err == nil {
				t.Errorf("%s is taken", word)
			}
		} else if o.Name != "hide" && o.Name != "secret" && o.Arg != "" {
			if _, _, err := r.Narrowed("spawn", "/p", []string{word + "=1", "true"}); err == nil {
				t.Errorf("%s=1 is taken", word)
			}
		}
	}
	if _, _, err := r.Narrowed("spawn", "/p", []string{"--read-only"}); err == nil {
		t.Error("no program is named, and none is missed")
	}
}
