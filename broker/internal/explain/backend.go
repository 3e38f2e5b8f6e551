package explain

import (
	"slices"
	"strings"

	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/planner"
)

// Held says which backend would hold such a run, where that is not native, and what of the answers that one cannot do.
func (x *Explainer) Held(e *Explanation) {
	if x.Backend == "" || x.Backend == "native" {
		return
	}
	e.Backend = x.Backend
	for i := range e.Answers {
		switch a := &e.Answers[i]; {
		case x.Input.InPlace && a.Decision == "absent":
			a.Decision = "deny" // Permission denied; see the loss "absence"
		case e.Kind == "host" && a.Decision != "allow" && !x.Input.ShareNet:
			a.Change, a.Once = "none with this backend, which gives no network", ""
		}
	}
	for _, l := range x.Losses {
		if concerns(l, e) {
			e.Lost = append(e.Lost, l.String())
		}
	}
}

// concerns says whether a loss is about what was asked for.
func concerns(l planner.Loss, e *Explanation) bool {
	closed := slices.ContainsFunc(e.Answers, func(a Answer) bool { return a.Decision != "allow" })
	switch l.What {
	case "network", "credentials":
		return e.Kind == "host"
	case "loopback and sockets":
		return e.Kind == "host" || e.Kind == "socket"
	case "absence", "questions":
		return e.path != "" && closed
	case "late secrets":
		return e.path != "" && !closed
	}
	if e.path == "" {
		return false
	}
	_, list, _ := strings.Cut(l.What, " in ") // guarded names, programs made, names
	list, _, _ = strings.Cut(list, " and ")
	return slices.ContainsFunc(strings.Split(list, ", "), func(dir string) bool {
		return strings.HasPrefix(dir, "/") && host.Within(e.path, dir)
	})
}
