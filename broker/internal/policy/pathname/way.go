package pathname

import "strings"

// Way is a pattern where links lead it to.
type Way struct {
	To          Pattern
	from, place string // the path before the first wildcard: as it is written, and what that leads to
}

// Lead is where the path before the first wildcard of a pattern leads to; ok is false where that is itself.
func (p Pattern) Lead(resolve func(string) string) (w Way, ok bool) {
	if p.abstract {
		return w, false
	}
	w.from = p.Fixed()
	w.place = resolve(w.from)
	w.To = p.Moved(func(string) string { return w.place })
	return w, w.place != w.from
}

// Back is the name by which the pattern's own path has something; ok is false for what does not lie where it leads.
func (w Way) Back(name string) (p string, ok bool) {
	if w.place == "/" {
		return w.from + strings.TrimSuffix(name, "/"), true
	}
	rest, ok := strings.CutPrefix(name, w.place)
	return w.from + rest, ok && (rest == "" || rest[0] == '/')
}
