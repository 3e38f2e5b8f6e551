//go:build linux

package credential

import (
	"fmt"
	"path/filepath"
	"testing"

	"sbx.example/sbx/audit"
	"sbx.example/sbx/shared/proxied"
)

// A program that has requests refused all the time does not fill the disk with their record. What was allowed is there.
func TestRefusedUsesAreBounded(t *testing.T) {
	const n = 3000
	for name, u := range map[string]proxied.Use{
		"refused": {Refused: "no rule allows it"}, "strayed": {Strayed: true}, "unsigned": {Unsigned: "it is not right"},
		"failed": {Failed: "it ended"}, "decoy": {Refused: "it has a mark", Decoy: "/h/key"}, "allowed": {Sent: true},
		"answered": {Status: 200}, "left": {Left: "it has left"},
	} {
		dir := filepath.Join(t.TempDir(), "audit")
		w, err := audit.Create(dir, "s", audit.Options{})
		if err != nil {
			t.Fatal(err)
		}
		lines := 0
		g := &Grants{by: Caller{Refused: func(string, bool) { lines++ }, Marked: func(string, string) { lines++ }}}
		g.Record(w)
		u.Secret, u.Host, u.Port = "one", "one.test", 443
		for range n {
			g.use(&u)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		one, counted := 0, 0
		for e, err := range audit.Query(w.Path(), audit.Filter{}) {
			switch {
			case err != nil:
				t.Fatal(err)
			case e.Kind == audit.KindBlocked:
				k := 0
				if _, err := fmt.Sscan(e.Detail[0].V, &k); err != nil {
					t.Fatal(err)
				}
				counted += k
			case e.Kind != audit.KindStart && e.Kind != audit.KindSeal:
				one++
			}
		}
		if name == "allowed" || name == "answered" || name == "left" {
			if one != n || counted != 0 {
				t.Errorf("%s: %d are on record, %d counted", name, one, counted)
			}
		} else if one > 1000 || one+counted != n || lines != n { // a hundred a second, however slow this machine is
			t.Errorf("%s: %d are on record and %d counted, want %d; %d were said", name, one, counted, n, lines)
		}
	}
}
