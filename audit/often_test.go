package audit

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Of what is refused all the time a log has a hundred a second one by one, and says how many others there were.
func TestRefusalsAreBounded(t *testing.T) {
	now := time.Unix(1e9, 0)
	dir := filepath.Join(t.TempDir(), "audit")
	w, err := Create(dir, "s", Options{})
	if err != nil {
		t.Fatal(err)
	}
	w.now = func() time.Time { return now }
	refuse := func(n int) {
		for range n {
			if _, err := w.Often(Event{Kind: KindDeny, Decision: "deny", Op: "request"}); err != nil {
				t.Fatal(err)
			}
		}
	}
	refuse(5000)
	now = now.Add(time.Second)
	refuse(100) // the control: so many are there one by one
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	w, err = Create(dir, "u", Options{})
	if err != nil {
		t.Fatal(err)
	}
	w.now = func() time.Time { return now }
	refuse(103)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for sid, want := range map[string]string{"s": "200 [4900]", "u": "100 [3]"} {
		one, counts := 0, []string{}
		for e, err := range Query(filepath.Join(dir, sid+".jsonl"), Filter{}) {
			if err != nil {
				t.Fatal(err)
			}
			switch e.Kind {
			case KindDeny:
				one++
			case KindBlocked:
				counts = append(counts, e.Detail[0].V)
			}
		}
		if got := fmt.Sprint(one, " ", counts); got != want {
			t.Errorf("%s: %s, want %s", sid, got, want)
		}
	}
}

// What is refused with long names is bounded by its bytes: a record may be as long as a hundred others. Short names are
// the control.
func TestBytesOfRefusalsAreBounded(t *testing.T) {
	for path, want := range map[string]string{"/short": "100 one by one, 100 counted",
		"/" + strings.Repeat("\xff", 4000): "1 one by one, 199 counted"} {
		now := time.Unix(1e9, 0)
		dir := filepath.Join(t.TempDir(), "audit")
		w, err := Create(dir, "s", Options{})
		if err != nil {
			t.Fatal(err)
		}
		w.now = func() time.Time { return now }
		for range 200 {
			if _, err := w.Often(Event{Kind: KindDeny, Decision: "deny", Op: "read", Path: path, Exe: path}); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		one, counted := 0, ""
		for e, err := range Query(filepath.Join(dir, "s.jsonl"), Filter{}) {
			switch {
			case err != nil:
				t.Fatal(err)
			case e.Kind == KindDeny:
				one++
			case e.Kind == KindBlocked:
				counted = e.Detail[0].V
			}
		}
		if got := fmt.Sprintf("%d one by one, %s counted", one, counted); got != want {
			t.Errorf("%d bytes of name: %s, want %s", len(path), got, want)
		}
	}
}
