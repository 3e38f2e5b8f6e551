//go:build linux

package checks

import (
	"slices"
	"strings"
)

// Status of a check.
const (
	Pass   = "pass"
	Fail   = "fail"
	Broken = "broken"
	Skip   = "skip"
)

// State of a negative control.
const (
	Effective   = "effective"
	Ineffective = "ineffective"
	NoControl   = "none"
)

// Result is one row of `sbx selftest --json`.
type Result struct {
	ID       string `json:"id"`
	Group    string `json:"group"`
	Title    string `json:"title"`
	Status   string `json:"status"`
	Expected string `json:"expected"`
	Got      string `json:"got"`
	Layer    string `json:"layer"`
	Control  string `json:"control"`
	Missing  string `json:"missing"`
}

// Summary counts the results.
type Summary struct {
	Pass   int `json:"pass"`
	Fail   int `json:"fail"`
	Broken int `json:"broken"`
	Skip   int `json:"skip"`
}

// Report is the whole of `sbx selftest --json`.
type Report struct {
	Checks  []Result `json:"checks"`
	Summary Summary  `json:"summary"`
}

// NewReport counts; OK says whether the selftest as a whole is good.
func NewReport(results []Result) Report {
	r := Report{Checks: results}
	for _, x := range results {
		switch x.Status {
		case Pass:
			r.Summary.Pass++
		case Fail:
			r.Summary.Fail++
		case Skip:
			r.Summary.Skip++
		default:
			r.Summary.Broken++
		}
	}
	return r
}

// OK is false as soon as one check failed or is broken, and when nothing was shown at all.
func (r Report) OK() bool { return r.Summary.Fail == 0 && r.Summary.Broken == 0 && r.Summary.Pass > 0 }

// Judge decides from the outcome in the sandbox and the outcome of the control. It has no other input.
func Judge(c Check, got, control Outcome) Result {
	r := Result{ID: c.ID, Group: c.Group, Title: c.Title, Expected: c.Must + " [" + strings.Join(c.Want, " ") + "]",
		Got: got.text(c.Want)}
	r.Control, r.Missing = controlState(c.Control, control)
	switch {
	case got.Skip != "":
		r.Status, r.Got, r.Control, r.Missing = Skip, "", NoControl, got.Skip
		return r
	case got.Act == "":
		r.Status = Broken
		r.Missing = "no answer from the sandbox" + noteOf(got)
		return r
	case !acceptable(c.Want, got):
		r.Status = Fail
		return r
	case r.Control == Ineffective:
		r.Status = Broken
		r.Missing = "the act does not succeed with the layer switched off either: " + control.text(nil)
		return r
	}
	r.Status, r.Layer = Pass, c.Layer
	return r
}

// acceptable: success only if the table says so, failure only for the reasons in the table.
func acceptable(want []string, got Outcome) bool {
	if got.OK {
		return slices.Contains(want, "OK")
	}
	for _, e := range got.errnos() {
		if !slices.Contains(want, e) {
			return false
		}
	}
	return got.Errno != ""
}

func controlState(c Control, got Outcome) (state, missing string) {
	switch {
	case c.None != "":
		return NoControl, c.None
	case got.Skip != "":
		return NoControl, got.Skip
	case got.OK, c.Reach > 0 && got.reached() >= c.Reach:
		return Effective, ""
	}
	return Ineffective, ""
}

func noteOf(o Outcome) string {
	if n := o.Detail["note"]; n != "" {
		return ": " + n
	}
	return ""
}
