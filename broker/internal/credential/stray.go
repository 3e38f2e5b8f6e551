//go:build linux

package credential

import (
	"os"
	"strings"

	"sbx.example/sbx/audit"
	"sbx.example/sbx/broker/internal/quoting"
	"sbx.example/sbx/shared/mark"
)

// signs are what the placeholders are found by: their last letters are another text in each session.
func (g *Grants) signs() (out []mark.Mark) {
	for _, x := range g.list {
		for _, p := range []string{x.placeholder, x.key} {
			if len(p) >= mark.Len {
				out = append(out, mark.Mark{Path: x.Name, Text: strings.ToUpper(p[len(p)-mark.Len:])})
			}
		}
	}
	return out
}

// Stray notes that the placeholder of a credential is in text, which goes to place. It is worth nothing there, so it is
// left, and nothing stops.
func (g *Grants) Stray(kind, place, text string) {
	if g == nil {
		return
	}
	m := mark.Find(g.signs(), text)
	if m == nil {
		return
	}
	e := audit.Event{Kind: audit.KindCredential, UID: os.Getuid(), Op: "use", Host: place, Decision: "deny",
		Reason: "its placeholder was in " + kind + ", where it does not belong, and was left there",
		Detail: []audit.KV{{K: "credential", V: m.Path}}}
	if strings.HasPrefix(place, "/") {
		e.Host, e.Path = "", place
	}
	g.noteBy(e, (*audit.Writer).Often)
	g.by.Refused("the placeholder of credential "+m.Path+" was in "+kind+" ("+quoting.Quote(place)+
		"), where it does not belong", false)
}
