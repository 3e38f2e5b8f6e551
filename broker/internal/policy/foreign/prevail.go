package foreign

import (
	"strings"

	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/policy/pathname"
)

// prevail keeps the order of tools in which a refusal counts before a grant, however narrow that is: in sbx the
// narrower rule decides. wins says of which two rules, over and r, the first counts before the other there. Where sbx
// would choose r, over is repeated for the part that they share, or r is listed, and left out or made a refusal.
func (im *importer) prevail(wins func(over, r policy.Rule) bool) {
	var kept, parts []policy.Rule
next:
	for _, r := range im.out.Rules {
		var mine []policy.Rule
		for _, over := range im.out.Rules {
			if over.Decision <= r.Decision || over.Kind != r.Kind || !wins(over, r) || !chosenOver(r, over) {
				continue
			}
			part, ok := shared(over, r, im.vars)
			switch {
			case ok:
				mine = append(mine, part)
			case r.Decision == policy.Ask: // left out, it would leave to a wider grant what it is about
				im.skip(r.String(), "%s counts before it there; refused", over)
				r.Decision = policy.Deny
			default:
				im.skip(r.String(), "%s counts before it there", over)
				continue next
			}
		}
		kept, parts = append(kept, r), append(parts, mine...)
	}
	im.out.Rules = append(kept, parts...)
}

// chosenOver says whether sbx might go by r where over is about the same.
func chosenOver(r, over policy.Rule) bool {
	switch r.Kind {
	case policy.KindHost:
		lo, _ := r.Host().Ports()
		return r.Host().Compare(over.Host()) > 0 && (over.Host().Includes(r.Host()) || lo != 0)
	case policy.KindSocket:
		return r.Path().Compare(over.Path()) > 0 && over.Path().Covers(r.Path())
	}
	if over.Access != policy.Read && over.Access != r.Access || r.Path().Compare(over.Path()) <= 0 {
		return false
	}
	text := r.Path().String()
	if i := strings.IndexByte(text, '*'); i >= 0 {
		text = text[:strings.LastIndexByte(text[:i], '/')]
	}
	return strings.Contains(text, `\`) || over.Path().Below(text)
}

// shared is over for the tree that r is about: of /base/**/name that is /tree/**/name.
func shared(over, r policy.Rule, vars policy.Vars) (policy.Rule, bool) {
	dir, isTree := r.Path().Tree()
	text := bare(over)
	i := strings.LastIndexByte(text, '/')
	base, anyDepth := strings.CutSuffix(text[:i], "/**")
	if r.Kind != policy.KindPath || !isTree || !anyDepth || strings.Contains(base, "*") || over.Path().Covers(r.Path()) {
		return over, false
	}
	over.Pattern = strings.TrimSuffix(pathname.Escape(dir), "/") + "/**" + text[i:] + "/**"
	part, err := policy.NewRule(over, vars)
	return part, err == nil
}

// denyFirst is the order of srt and Claude Code: a refusal counts first, but allowRead opens what denyRead closes.
func (im *importer) denyFirst() {
	from := func(r policy.Rule, list string) bool { return strings.HasSuffix(r.Reason, "filesystem."+list) }
	im.prevail(func(over, r policy.Rule) bool {
		if !from(over, "denyRead") {
			return true
		}
		for _, o := range im.out.Rules {
			if from(o, "allowRead") && o.Path().Covers(r.Path()) { // r itself, or what may be read is written
				return false
			}
		}
		return true
	})
}

// globsFirst is Codex's order: the narrower entry decides, but what a wildcard denies is closed everywhere.
func (im *importer) globsFirst() {
	im.prevail(func(over, r policy.Rule) bool {
		return over.Kind == policy.KindPath && over.Access == policy.Read && wild(over)
	})
}
