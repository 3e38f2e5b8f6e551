package policy

import (
	"path"
	"slices"
	"time"

	"sbx.example/sbx/broker/internal/policy/pathname"
)

// A list that grants is narrower with fewer entries, but for one that makes less of a place than what is around it
// does: without such an entry the place is as wide as its surroundings. So the organisation's files are kept as what
// they show of places, and what holds in the end is compared with that.

// closing are the entries of the organisation's final lists that close a place inside something wider, and what its
// files let be reached.
type closing struct {
	shown map[string]showing // by the organisation's files alone
	at    map[string]string  // the key of each of these entries, by its place
	// hidden is what they hide, where fs.hidden is final
	hidden []pathname.Pattern
	// by these files as well: without questions, and where somebody can be asked
	reach, asked reached
}

// closes is what the layers up to the organisation's close for good.
func (e Effective) closes() closing {
	c := closing{shown: e.places(), at: map[string]string{}, reach: e.reached(false), asked: e.reached(true)}
	if _, locked := e.Locked["fs.hidden"]; locked {
		for _, h := range e.Concealed() {
			if h.Reason == "fs.hidden" {
				c.hidden = append(c.hidden, h.Rule)
			}
		}
	}
	for _, key := range [...]string{"fs.read_only", "fs.overlay", "fs.tmpfs"} {
		if _, locked := e.Locked[key]; !locked {
			continue
		}
		list := e.list(key)
		if key == "fs.read_only" { // to which that of the profile is added
			list = slices.Concat(e.Profile.ReadOnly, list)
		}
		for _, p := range list {
			p, _ = pathname.SplitOptional(p)
			if c.shown[p] < showingAt(c.shown, path.Dir(p)) {
				c.at[p] = key
			}
		}
	}
	return c
}

// around is the key of the final entry that p is in; "" for none.
func (c closing) around(p string) string {
	if c.hides(p) {
		return "fs.hidden"
	}
	for ; len(c.at) > 0; p = path.Dir(p) {
		if key := c.at[p]; key != "" || p == "/" || p == "." {
			return key
		}
	}
	return ""
}

func (c closing) hides(p string) bool {
	return slices.ContainsFunc(c.hidden, func(h pathname.Pattern) bool { return h.MatchTree(p) })
}

// showing is what the organisation's files show of p: of what they hide, what they name in it.
func (c closing) showing(p string) showing {
	if !c.hides(p) {
		return showingAt(c.shown, p)
	}
	for ; c.hides(p) && p != "/"; p = path.Dir(p) {
		if as, ok := c.shown[p]; ok {
			return as
		}
	}
	return 0
}

// wider is the key of the final entry that would show more of p than the organisation does; "" for none.
func (c closing) wider(p string, as showing) string {
	if key := c.around(p); key != "" && as > c.showing(p) {
		return key
	}
	return ""
}

// reopened is a final entry whose place these lists would show more of; "" for none.
func (c closing) reopened(now map[string]showing) (key string) {
	for p := range c.at {
		if key = c.wider(p, showingAt(now, p)); key != "" {
			return key
		}
	}
	for p, as := range now {
		if key = c.wider(p, as); key != "" {
			return key
		}
	}
	return ""
}

// Reopens is the key of the final entry that would be shown wider with p in the list of another key, and where that was
// made final; "" for none.
func (e Effective) Reopens(list, p string) (key string, lock Origin) {
	as := map[string]showing{"fs.writable": written, "fs.overlay": layered, "fs.read_only": readable,
		"fs.tmpfs": scratch}[list]
	key = e.closed.wider(path.Clean(p), as)
	return key, e.Locked[key]
}

// Overlays is the final key that a layer over p would widen, and where that was made final; "" for none. What these
// settings or a rule let be written has less with one: nothing of it reaches the host.
func (e Effective) Overlays(s Store, p string, now time.Time) (key string, lock Origin) {
	if key, lock = e.Reopens("fs.overlay", p); key != "" {
		return key, lock
	}
	lock, locked := e.Locked["fs.overlay"]
	if !locked || showingAt(e.places(), path.Clean(p)) >= layered {
		return "", Origin{}
	}
	r, ok := s.Match(Query{Kind: KindPath, Path: path.Clean(p), Access: Write, Now: now})
	if ok && r.Decision == Allow {
		return "", Origin{}
	}
	return "fs.overlay", lock
}

// needs is what a place has to be for an access.
func (a Access) needs() showing {
	if a == Write {
		return written
	}
	return readable
}
