package policy

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"sbx.example/sbx/broker/internal/policy/excerpt"
	"sbx.example/sbx/broker/internal/policy/nearest"
	"sbx.example/sbx/broker/internal/policy/pathname"
	"sbx.example/sbx/broker/internal/policy/peer"
)

// Rule is one [[rule]] of a policy.toml.
type Rule struct {
	Kind     Kind
	Pattern  string // as written
	Access   Access
	Decision Decision
	Expires  time.Time // zero: never
	Reason   string
	Final    bool     // org only: no other scope can override it
	Program  string   // reveal only: the program that is shown it, as a path; "" for all
	Label    string   // of a path: who reads there carries it, see Labels
	Accepts  []string // of a host or socket: the labels that it may hear of
	Decoy    bool     // of a path that is denied: a marked fake stands there, and who reads it is asked about
	By       string
	Added    time.Time
	Origin   Origin
	path     pathname.Pattern
	host     peer.Pattern
	tls      string
	lock     Origin // see Bound
}

// maxRules bounds one file; ten thousand are matched in about a millisecond.
const maxRules = 10000

// NewRule checks a rule that does not come from a file.
func NewRule(r Rule, vars Vars) (Rule, error) {
	err := r.compile(vars)
	return r, err
}

// Path is the compiled pattern of a path, exec or socket rule.
func (r Rule) Path() pathname.Pattern { return r.path }

// Host is the compiled pattern of a host rule.
func (r Rule) Host() peer.Pattern { return r.host }

// Passes says why a rule that allows passes over a path, "" where it does not: acts says why that decides what runs
// outside of the sandbox. Such a place is to be named, itself or something in it: a rule about what lies in a directory
// around it, by a wildcard, is not about it.
func (r Rule) Passes(p string, acts func(string) string) string {
	named := r.path.Fixed()
	if p == named || acts == nil {
		return ""
	}
	why := acts(p)
	if why != "" && acts(named) != "" {
		return ""
	}
	return why
}

func (r Rule) String() string {
	s := fmt.Sprintf("%s %s %s", r.Decision, r.Access, r.Pattern)
	if r.Program != "" {
		s += " for " + r.Program
	}
	if r.Label != "" {
		s += " label " + r.Label
	}
	if r.Decoy {
		s += " decoy"
	}
	if len(r.Accepts) > 0 {
		s += " accepts " + strings.Join(r.Accepts, ",")
	}
	return s
}

// compile fills the default access, checks the combination and parses the pattern.
func (r *Rule) compile(vars Vars) (err error) {
	if r.Access == "" {
		switch r.Kind {
		case KindPath:
			r.Access = Read
		case KindExec:
			r.Access = Exec
		default:
			r.Access = Connect
		}
	}
	ok := false
	switch r.Kind {
	case KindPath:
		ok = r.Access == List || r.Access == Read || r.Access == Write || r.Access == Exec
	case KindExec:
		ok = r.Access == Exec
	case KindHost, KindSocket:
		ok = r.Access == Connect
	}
	if !ok {
		return fmt.Errorf("access %s does not go with %s", excerpt.Quote(string(r.Access)), r.Kind)
	}
	if r.Decision < Allow || r.Decision > Reveal {
		return errors.New("decision is missing: allow, deny, ask or reveal")
	}
	if len(r.Reason) > 1024 || len(r.By) > 256 {
		return errors.New("reason or by is too long")
	}
	if err := r.checkLabels(vars); err != nil {
		return err
	}
	if r.Decoy && r.Kind != KindPath {
		return errors.New("decoy goes with path")
	}
	if r.Kind == KindHost {
		if r.host, err = peer.ParsePattern(r.Pattern); err != nil {
			return err
		}
		if r.tls != "" {
			if r.host = r.host.WithSNI(); !r.host.SNI() {
				return errors.New("tls = \"sni\" needs a name and is about TCP")
			}
			r.Pattern = r.host.String() // what is shown and compared has it too
		}
		return nil
	}
	if r.tls != "" {
		return errors.New("tls goes with host")
	}
	if r.path, err = pathname.ParsePattern(r.Pattern, vars); err != nil {
		return err
	}
	if r.path.Abstract() && r.Kind != KindSocket {
		return fmt.Errorf("%s names an abstract socket; use the key socket", excerpt.Quote(r.Pattern))
	}
	if r.Decoy && !r.isFile(Deny) {
		return errors.New("decoy is about one file that is denied: a path without wildcards, access read, decision deny")
	}
	return r.checkReveal(vars)
}

// isFile says whether a rule decides in this way about reading one file.
func (r *Rule) isFile(d Decision) bool {
	_, one := r.path.Literal()
	return r.Kind == KindPath && r.Access == Read && one && r.Decision == d
}

// checkReveal holds that a rule which shows a secret is about reading one file, and that it alone names a program.
func (r *Rule) checkReveal(vars Vars) error {
	if r.Decision != Reveal {
		if r.Program != "" {
			return errors.New("program goes with decision = \"reveal\"")
		}
		return nil
	}
	if !r.isFile(Reveal) {
		return errors.New("decision reveal is about reading one file: a path without wildcards, access read")
	}
	if r.Program == "" {
		return nil
	}
	p, err := pathname.ParsePattern(r.Program, vars)
	if err != nil {
		return fmt.Errorf("program: %w", err)
	}
	if _, one := p.Literal(); !one {
		return fmt.Errorf("program %s: want the path of one program", excerpt.Quote(r.Program))
	}
	r.Program = p.String()
	return nil
}

// parsePolicy reads a policy.toml.
func parsePolicy(src *source, vars Vars) ([]Rule, error) {
	d, err := parse(src)
	if err != nil {
		return nil, err
	}
	return d.rules(vars)
}

// Lines are those of one [[rule]] in a file, counted from 1.
type Lines struct{ From, To int }

// RuleLines is ParseRules with where each rule stands; none of those do that are written as rule = [...].
func RuleLines(data []byte, path string, scope Scope, vars Vars) ([]Rule, []Lines, error) {
	if len(data) == 0 {
		return nil, nil, nil
	}
	d, err := parse(&source{scope: scope, path: path, data: data})
	if err != nil {
		return nil, nil, err
	}
	rules, err := d.rules(vars)
	return rules, d.blocks("rule"), err
}

func (d *document) rules(vars Vars) ([]Rule, error) {
	for _, name := range keysOf(d.tree) {
		line, _ := d.lineOf(name)
		switch name {
		case "version":
			if d.tree[name] != int64(1) {
				return nil, d.errAt(line, "version must be 1")
			}
		case "rule":
		default:
			return nil, d.errAt(line, "unknown key %s%s", excerpt.Quote(name), hint(name, []string{"version", "rule"}))
		}
	}
	var tables []map[string]any
	switch list := d.tree["rule"].(type) {
	case nil:
		return nil, nil
	case []map[string]any:
		tables = list
	case []any:
		for _, e := range list {
			t, _ := e.(map[string]any)
			tables = append(tables, t)
		}
	default:
		line, _ := d.lineOf("rule")
		return nil, d.errAt(line, "rule must be a list of tables: [[rule]]")
	}
	if len(tables) > maxRules {
		return nil, d.errAt(0, "more than %d rules", maxRules)
	}
	blocks := d.blocks("rule")
	rules := make([]Rule, 0, len(tables))
	for i, t := range tables {
		at := Lines{}
		if i < len(blocks) {
			at = blocks[i]
		} else if all, elems := d.lineOf("rule"); i < len(elems) {
			at.From = elems[i]
		} else {
			at.From = all
		}
		r, err := d.rule(t, at, vars)
		if err != nil {
			return nil, err
		}
		rules = append(rules, r)
	}
	return rules, nil
}

func hint(name string, known []string) string {
	if n := nearest.Name(name, known); n != "" {
		return "; did you mean " + n + "?"
	}
	return ""
}

// blocks are the lines of each [[name]], without what follows its last assignment.
func (d *document) blocks(name string) []Lines {
	var out []Lines
	open := false
	for _, st := range d.stmts {
		switch {
		case st.Header && st.Array && st.Key == name:
			out = append(out, Lines{st.Line, st.Line})
			open = true
		case st.Header && !strings.HasPrefix(st.Key, name+"."):
			open = false
		case open:
			out[len(out)-1].To = st.EndLine
		}
	}
	return out
}

// lineIn is the line of one of a block's own keys, or of the block where they are written another way.
func (d *document) lineIn(b Lines, key string) int {
	for _, st := range d.stmts {
		if !st.Header && st.Key == key && st.Line >= b.From && st.Line <= b.To {
			return st.Line
		}
	}
	return b.From
}

func (d *document) rule(t map[string]any, at Lines, vars Vars) (Rule, error) {
	r := Rule{Origin: d.origin(at.From)}
	if t == nil {
		return r, d.errAt(at.From, "a rule must be a table")
	}
	for _, name := range keysOf(t) {
		if err := r.set(name, t[name]); err != nil {
			return r, d.errAt(d.lineIn(at, "rule."+name), "rule: %v", err)
		}
	}
	if r.Kind == "" {
		return r, d.errAt(at.From, "rule: one of path, exec, host, socket is missing")
	}
	if r.Final && d.src.scope != ScopeOrg {
		return r, d.errAt(d.lineIn(at, "rule.final"), "rule: only the org file may make a rule final")
	}
	if err := r.compile(vars); err != nil {
		line := at.From
		if r.Decision != 0 { // something is wrong with what stands there, not missing
			line = d.lineIn(at, "rule."+string(r.Kind))
		}
		return r, d.errAt(line, "rule: %v", err)
	}
	return r, nil
}

func ruleKeys() []string {
	return []string{"path", "exec", "host", "socket", "access", "decision", "expires", "reason", "final", "by", "added",
		"tls", "program", "label", "accepts", "decoy"}
}

// set assigns one key of a rule.
func (r *Rule) set(name string, v any) (err error) {
	var s string
	switch name {
	case "final":
		r.Final, err = as[bool](v, "true or false")
	case "decoy":
		r.Decoy, err = as[bool](v, "true or false")
	case "expires":
		r.Expires, err = instant(v)
	case "added":
		r.Added, err = instant(v)
	case "accepts":
		r.Accepts, err = texts(v, func(s string) (string, error) { return s, nil })
	case "path", "exec", "host", "socket", "access", "decision", "reason", "by", "tls", "program", "label":
		s, err = as[string](v, "a string")
	default:
		return fmt.Errorf("unknown key %s%s", excerpt.Quote(name), hint(name, ruleKeys()))
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	switch name {
	case "path", "exec", "host", "socket":
		if r.Kind != "" {
			return fmt.Errorf("%s and %s in one rule; write two", r.Kind, name)
		}
		r.Kind, r.Pattern = Kind(name), s
	case "access":
		r.Access = Access(s)
	case "decision":
		r.Decision, err = ParseDecision(s)
	case "reason":
		r.Reason = s
	case "by":
		r.By = s
	case "program":
		r.Program = s
	case "label":
		r.Label = s
	case "tls":
		if r.tls = s; s != "sni" {
			err = fmt.Errorf("tls is %s, not sni", excerpt.Quote(s))
		}
	}
	return err
}

// instant wants a date with a zone: a local one would expire at different moments on different machines.
func instant(v any) (time.Time, error) {
	t, err := as[time.Time](v, "a date such as 2027-01-01T00:00:00Z")
	if err != nil {
		return t, err
	}
	switch t.Location().String() {
	case "datetime-local", "date-local", "time-local":
		return t, errors.New("the date needs a time and a zone: 2027-01-01T00:00:00Z")
	}
	return t.UTC(), nil
}
