package foreign

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/policy/edit"
	"sbx.example/sbx/broker/internal/policy/excerpt"
	"sbx.example/sbx/broker/internal/policy/pathname"
)

// Exports lists what Export writes.
func Exports() []string { return []string{"toml", "claude", "codex", "cursor", "srt"} }

// Export writes what is in force, in our form ("toml": config and policy in one text, each with a heading) or as
// settings of another tool, where names are those that are hidden in the project at any depth. What the other form
// cannot say is listed; nothing that is written opens more than sbx does.
func Export(format string, e policy.Effective, s policy.Store, names []string) (string, []edit.Unmapped, error) {
	write := map[string]func(*exporter) (string, error){"claude": exportClaude, "codex": exportCodex,
		"cursor": exportCursor, "srt": exportSRT}[format]
	switch {
	case format == "toml":
		return edit.Text(e, s), nil, nil
	case write == nil:
		return "", nil, fmt.Errorf("exporting policy: unknown format %s; known are %s", excerpt.Quote(format),
			strings.Join(Exports(), ", "))
	}
	x := &exporter{e: e}
	x.vars = e.Vars
	x.vars.Narrow = false
	x.conceal(names)
	x.collect(s, format)
	text, err := write(x)
	x.otherSettings(format)
	return text, x.missing, err
}

// exporter is what is in force as one list of rules, in which settings are rules too.
type exporter struct {
	e       policy.Effective
	vars    policy.Vars
	project policy.Rule        // the one by which the project may be written; none: it may not
	sealed  []pathname.Pattern // what nothing shows, whatever a rule says
	hidden  []policy.Rule      // that, and what is out of sight
	rules   []policy.Rule      // all others
	unsaid  []policy.Rule      // refusals of paths that no other tool can be told
	inForce []policy.Rule      // these, before any is left out
	hosts   []string           // of the settings
	all     bool               // every host may be reached
	missing []edit.Unmapped
}

// shape is what another tool has a list for.
type shape struct {
	kind     policy.Kind
	decision policy.Decision
	access   policy.Access
}

func shapeOf(r policy.Rule) shape { return shape{r.Kind, r.Decision, r.Access} }

func (x *exporter) miss(name, why string) {
	x.missing = append(x.missing, edit.Unmapped{Name: name, Why: why})
}

// own makes a rule of a setting; what is no pattern was refused when the file was read.
func (x *exporter) own(list *[]policy.Rule, pattern string, a policy.Access, d policy.Decision) {
	r, err := policy.NewRule(policy.Rule{Kind: policy.KindPath, Pattern: pattern, Access: a, Decision: d}, x.vars)
	if err != nil {
		x.miss(pattern, err.Error())
		return
	}
	*list = append(*list, r)
}

// conceal lists what is hidden, with names in the project.
func (x *exporter) conceal(names []string) {
	for _, h := range x.e.Concealed() {
		if h.Kind != policy.KindPath {
			continue
		}
		if h.Sealed() {
			x.sealed = append(x.sealed, h.Rule.WithTree())
		}
		if x.own(&x.hidden, h.Rule.String(), policy.Read, policy.Deny); !plainText(x.hidden[len(x.hidden)-1]) {
			x.miss(h.Pattern, notPlain)
			x.unsaid = append(x.unsaid, x.hidden[len(x.hidden)-1])
			x.hidden = x.hidden[:len(x.hidden)-1]
		}
	}
	for _, name := range names {
		if p := x.vars.Project; p != "" {
			x.own(&x.hidden, pathname.Escape(p)+"/**/"+name, policy.Read, policy.Deny)
			x.sealed = append(x.sealed, x.hidden[len(x.hidden)-1].Path().WithTree())
		}
	}
}

// collect fills the lists of rules.
func (x *exporter) collect(s policy.Store, format string) {
	var all []policy.Rule
	for access, paths := range map[policy.Access][]string{policy.Read: x.e.FS.ReadOnly, policy.Write: x.e.Writable()} {
		for _, p := range paths {
			p, _ = pathname.SplitOptional(p)
			x.own(&all, strings.TrimSuffix(pathname.Escape(p), "/")+"/**", access, policy.Allow)
		}
	}
	slices.SortFunc(all, func(a, b policy.Rule) int { return strings.Compare(a.String(), b.String()) })
	for _, r := range s.InForce() {
		all = append(all, x.everyPort(r))
	}
	reach, hosts := x.e.Reach(false)
	x.inForce, x.hosts, x.all = all, hosts, reach == policy.AllHosts
	for _, r := range all {
		if r.Decision != policy.Allow && r.Decision != policy.Reveal && !r.Expires.IsZero() {
			x.miss(r.String(), "written without its end")
			r.Expires = time.Time{}
		}
		why := x.cannotSay(r)
		switch dir, _ := r.Path().Tree(); {
		case r.Decision == policy.Reveal:
			x.miss(r.String(), "other tools show a secret to every program, or to none")
			continue
		case why != "":
			x.miss(r.String(), why)
			x.all = x.all && (r.Kind != policy.KindHost || r.Decision == policy.Allow)
			if r.Kind == policy.KindPath && r.Decision != policy.Allow {
				x.unsaid = append(x.unsaid, r)
			}
			continue
		case r.Kind == policy.KindPath && r.Decision != policy.Deny && slices.ContainsFunc(all, func(o policy.Rule) bool {
			return o.Label != "" && o.Path().Covers(r.Path())
		}):
			x.miss(r.String(), "nothing there keeps in what was read: written as a refusal")
			r.Decision = policy.Deny
		case r.Decision == policy.Ask && format != "claude" && (format != "cursor" || r.Kind != policy.KindPath):
			x.miss(r.String(), "nothing asks there: written as a refusal")
			r.Decision = policy.Deny
		case r.Decision == policy.Allow && r.Access == policy.Write && dir == x.vars.Project && dir != "":
			x.project = r
			continue
		}
		x.rules = append(x.rules, r)
	}
	if x.writesProject() && x.opened(x.project) {
		x.project = policy.Rule{}
	}
	if reach == policy.AllHosts && !x.all {
		x.miss("network.allow", "a refusal of hosts that has no equivalent bounds it; list the hosts")
	}
}

const (
	notPlain = "the name has characters that are wildcards there"
	allHosts = "all hosts cannot be expressed; list them"
)

// everyPort makes a refusal of one port one of all: other tools have no ports.
func (x *exporter) everyPort(r policy.Rule) policy.Rule {
	lo, _ := r.Host().Ports()
	if r.Kind != policy.KindHost || r.Decision == policy.Allow || lo == 0 {
		return r
	}
	name := r.Pattern[:strings.LastIndexByte(r.Pattern, ':')]
	all, err := policy.NewRule(policy.Rule{Kind: r.Kind, Pattern: name, Decision: r.Decision, Origin: r.Origin}, x.vars)
	if err != nil || r.Host().UDP() || r.Host().SNI() {
		return r
	}
	x.miss(r.String(), "written for every port")
	return all
}

// cannotSay is why no other tool has a rule, or empty.
func (x *exporter) cannotSay(r policy.Rule) string {
	switch {
	case !r.Expires.IsZero():
		return "it expires"
	case r.Kind == policy.KindExec, r.Access == policy.List, r.Access == policy.Exec:
		return "no equivalent"
	case r.Kind == policy.KindHost && !plainHost(r):
		return "a port, a protocol or * has no equivalent"
	case r.Kind == policy.KindSocket && (r.Path().Abstract() || wild(r)):
		return "an abstract socket or a wildcard has no equivalent"
	case r.Kind == policy.KindPath && !plainText(r):
		return notPlain
	case r.Decision != policy.Allow:
		return ""
	}
	for _, h := range x.sealed {
		if r.Kind == policy.KindPath && h.Covers(r.Path()) {
			return "hidden: " + h.String()
		}
	}
	for _, o := range x.inForce {
		if o.Decision != policy.Allow && covers(o, r) &&
			(o.Origin.Scope > r.Origin.Scope || o.Origin.Scope == policy.ScopeOrg) {
			return "overruled by " + o.String()
		}
	}
	return ""
}

// covers says whether a refusal is about all that r allows.
func covers(o, r policy.Rule) bool {
	switch {
	case o.Kind != r.Kind:
		return false
	case r.Kind == policy.KindHost:
		return o.Host().Includes(r.Host())
	}
	return (o.Access == policy.Read || o.Access == r.Access) && o.Path().Covers(r.Path())
}

func plainHost(r policy.Rule) bool {
	h := r.Host()
	lo, _ := h.Ports()
	p, isAddr := h.Prefix()
	return lo == 0 && !h.UDP() && !h.ICMP() && !h.SNI() && !h.Any() && (!isAddr || p.IsSingleIP())
}

func plainText(r policy.Rule) bool { return !strings.ContainsAny(r.Path().String(), `\?[{`) }

// wild says whether a pattern has a wildcard other than a tree at its end.
func wild(r policy.Rule) bool { return strings.Contains(bare(r), "*") }

// bare is a pattern without the tree at its end: in other tools a folder stands for all in it.
func bare(r policy.Rule) string {
	if s := strings.TrimSuffix(r.Path().String(), "/**"); s != "" {
		return s
	}
	return "/"
}

// granted says whether a rule may be written for a tool that allows plain paths only. Not shut: the tool cannot close
// what lies below one.
func (x *exporter) granted(r policy.Rule, shut bool) bool {
	switch below := x.closed(r); {
	case r.Decision != policy.Allow || r.Kind != policy.KindPath:
	case wild(r):
		x.miss(r.String(), "a wildcard can be denied there, not allowed")
		return false
	case x.opened(r):
		return false
	case !shut && below != "":
		x.miss(r.String(), "it would open "+below+", which cannot be closed there")
		return false
	}
	x.note(r)
	return true
}

// writesProject says whether the project may be written.
func (x *exporter) writesProject() bool { return x.project.Decision == policy.Allow }

// opened says whether a rule allows something that a refusal below it is about which no other tool can be told.
func (x *exporter) opened(r policy.Rule) bool {
	if r.Kind != policy.KindPath || r.Decision != policy.Allow {
		return false
	}
	below := closes(x.unsaid, r)
	if below != "" {
		x.miss(r.String(), "it would open "+below+", which cannot be said there")
	}
	return below != ""
}

// note lists an allowed path that is no tree here and that stands in the export.
func (x *exporter) note(r policy.Rule) {
	if r.Decision == policy.Allow && r.Kind == policy.KindPath && !strings.HasSuffix(r.Path().String(), "/**") {
		x.miss(r.String(), "in the export; there it covers all below if it is a folder")
	}
}

// closed names something at or below what r allows that is hidden, denied or asked about. What covers all of it is
// overruled by r, which says more.
func (x *exporter) closed(r policy.Rule) string { return closes(slices.Concat(x.hidden, x.rules), r) }

func closes(list []policy.Rule, r policy.Rule) string {
	dir, ok := r.Path().Tree()
	if !ok {
		dir, ok = r.Path().Literal()
	}
	for _, o := range list {
		if ok && o.Kind == policy.KindPath && o.Decision != policy.Allow && o.Path().Below(dir) &&
			(o.Access != policy.Write || o.Access == r.Access) &&
			(!o.Path().Covers(r.Path()) || o.Path().String() == r.Path().String()) {
			return o.Pattern
		}
	}
	return ""
}

// deniedBy names a rule that covers all that r allows, for tools in which a refusal wins even over what is narrower.
func (x *exporter) deniedBy(r policy.Rule) string {
	for _, o := range slices.Concat(x.hidden, x.rules) {
		if r.Decision == policy.Allow && o.Decision == policy.Deny && covers(o, r) {
			return o.String()
		}
	}
	return ""
}

// otherSettings lists the settings that somebody made and that the format has no word for.
func (x *exporter) otherSettings(format string) {
	said := map[string][]string{
		"claude": {"sandbox.enabled", "sandbox.fallback_on_unavailable", "env.set", "env.deny"},
		"codex":  {"sandbox.prompt", "env.set", "env.deny", "env.pass"},
	}[format]
	said = append(said, "sandbox.profile", "fs.read_only", "fs.writable", "fs.hidden", "fs.secrets", "network.allow",
		"network.hosts")
	for _, k := range policy.Keys() {
		if len(x.e.Origins[k]) > 0 && !slices.Contains(said, k) {
			x.miss(k, "no equivalent")
		}
	}
}

// set says whether somebody made a setting.
func (x *exporter) set(key string) bool { return len(x.e.Origins[key]) > 0 }

func encodeJSON(v any) (string, error) {
	out, err := json.MarshalIndent(v, "", "  ")
	return string(out) + "\n", err
}

// lists are the lists of a format by the rules that go into them.
type lists map[shape]*[]string

// put adds what a rule says to its list.
func (l lists) put(x *exporter, r policy.Rule, text string) {
	if list := l[shapeOf(r)]; list == nil {
		x.miss(r.String(), "no equivalent")
	} else if !slices.Contains(*list, text) {
		*list = append(*list, text)
	}
}

// whole is put where who may not read may not write.
func (l lists) whole(x *exporter, r policy.Rule, text func(policy.Rule) string) {
	l.put(x, r, text(r))
	if r.Kind == policy.KindPath && r.Decision == policy.Deny && r.Access == policy.Read {
		r.Access = policy.Write
		l.put(x, r, text(r))
	}
}

func exportSRT(x *exporter) (string, error) {
	type network struct {
		AllowedDomains   []string `json:"allowedDomains"`
		DeniedDomains    []string `json:"deniedDomains"`
		AllowUnixSockets []string `json:"allowUnixSockets,omitempty"`
	}
	type filesystem struct {
		DenyRead   []string `json:"denyRead"`
		AllowRead  []string `json:"allowRead,omitempty"`
		AllowWrite []string `json:"allowWrite"`
		DenyWrite  []string `json:"denyWrite"`
	}
	if x.all {
		x.miss("network.allow", allHosts)
	}
	n := network{append([]string{}, x.plainHosts()...), []string{}, nil}
	f := filesystem{[]string{}, nil, []string{}, []string{}}
	l := lists{
		{policy.KindHost, policy.Allow, policy.Connect}:   &n.AllowedDomains,
		{policy.KindHost, policy.Deny, policy.Connect}:    &n.DeniedDomains,
		{policy.KindSocket, policy.Allow, policy.Connect}: &n.AllowUnixSockets,
		{policy.KindPath, policy.Deny, policy.Read}:       &f.DenyRead,
		{policy.KindPath, policy.Deny, policy.Write}:      &f.DenyWrite,
		{policy.KindPath, policy.Allow, policy.Read}:      &f.AllowRead,
		{policy.KindPath, policy.Allow, policy.Write}:     &f.AllowWrite,
	}
	for _, r := range x.hidden {
		l.whole(x, r, bare)
	}
	if x.writesProject() {
		f.AllowWrite = append(f.AllowWrite, x.vars.Project)
	}
	for _, r := range x.rules {
		switch by := x.deniedBy(r); {
		case !x.granted(r, r.Access != policy.Read): // allowRead opens what denyRead closed
		case by != "" && r.Access != policy.Read:
			x.miss(r.String(), "denied there by "+by)
		default:
			l.whole(x, r, textOf)
		}
	}
	slices.Sort(f.DenyWrite) // when it comes back, those of denyRead are refusals of their own
	return encodeJSON(struct {
		Network    network    `json:"network"`
		Filesystem filesystem `json:"filesystem"`
	}{n, f})
}

// textOf is the host or the plain path of a rule.
func textOf(r policy.Rule) string {
	if r.Kind == policy.KindHost {
		return r.Pattern
	}
	return bare(r)
}

// plainHosts lists the hosts of the settings that other tools can name.
func (x *exporter) plainHosts() []string {
	var out []string
	for _, h := range x.hosts {
		r, err := policy.NewRule(policy.Rule{Kind: policy.KindHost, Pattern: h, Decision: policy.Allow}, x.vars)
		why := x.cannotSay(r)
		if err != nil {
			why = err.Error()
		}
		if why != "" {
			x.miss("network.hosts "+h, why)
			continue
		}
		out = append(out, h)
	}
	return out
}
