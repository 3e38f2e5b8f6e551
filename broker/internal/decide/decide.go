// Package decide answers one question: may this program do this, now, and if not by itself, should a human be asked?
// It must never touch the file system, wait, or let a secret through, whatever a rule or an answer says.
// The gate and the prompt call it for every access that the mounts do not settle; `sbx why` calls it to explain.
package decide

import (
	"slices"
	"strings"
	"syscall"
	"time"

	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/policy/pathname"
	"sbx.example/sbx/broker/internal/policy/peer"
)

// Ask is one access that waits for an answer. Path is absolute and clean; Target is where it leads if it is a
// symbolic link, and then that is what would be granted.
type Ask struct {
	ID       string
	PID      int
	Inside   int // the program's number in the sandbox, 0 where it is not known
	Exe, Cwd string
	Op       string // read write exec stat connect …, see policy.AccessOf
	Kind     policy.Kind
	Path     string
	Target   string
	Host     string
	Port     int
	Flags    []string // "dir": Path is a directory; "socket": it is a socket, whatever the operation
	Walk     string   // the directory above that the program has listed, and goes through since
	Did      string   // of a decoy: what a program did with it
	// Of are the files one of which has Path as a temporary name (pathname.Originals): set only where a file or directory
	// is to be made there and nothing has the name, or what has it was made so in this session.
	Of []string
}

// Flags of an Ask.
const (
	WholeTree = "whole"   // a directory that is had with everything below it or not at all
	Mounted   = "mounted" // what is allowed once is mounted for a moment, for every program
)

// Lookup is the operation of an Ask about a name whose address is wanted: the port is the likeliest one, not one that
// was used.
const Lookup = "lookup"

// Decision of a Verdict.
type Decision int

// Decisions; the zero value refuses.
const (
	Deny Decision = iota
	AskHuman
	Allow
)

func (d Decision) String() string {
	switch d {
	case Allow:
		return "allow"
	case AskHuman:
		return "ask"
	}
	return "deny"
}

// Verdict is the decision. Path with Scope is what may be opened up: File, or Tree where nothing hidden or ruled
// out lies in it.
type Verdict struct {
	Decision Decision
	Scope    Scope
	Life     Life
	Until    time.Time
	Errno    int
	Silent   bool // a known probe: neither asked nor reported
	Reason   string
	Rule     string
	Origin   string
	Path     string
	Secret   bool // it is about a secret file that somebody has spoken of, see Reveal
	// Labels that stand in the way, and why: the places that were read, or who would hear.
	Labels, Others []string
	Outside        string // the command that does outside of the sandbox what was refused
	Acts           string // why what is written there decides what runs outside: "a shell runs it"
	// of a directory: all below it is allowed as well, and nothing there is hidden, refused or to be asked about
	Whole bool
}

// Env is everything a decision depends on.
type Env struct {
	Policy    func(policy.Query) (policy.Rule, bool)      // policy.Store.Match
	Restricts func(string, policy.Access, time.Time) bool // policy.Store.Restricts
	InForce   func() []policy.Rule                        // policy.Store.InForce
	Hidden    []policy.Hiding                             // policy.Effective.Concealed
	// policy.Effective.Asks: asked about although something around is readable
	Asks []pathname.Pattern
	// Files says whether an option or a setting lets a file be written, whatever is asked about around it. May be nil.
	Files    func(string) bool
	Grants   *Grants // answers of this session; may be nil
	Now      time.Time
	Static   bool     // never ask: what is not granted is refused
	Unasked  Decision // with --prompt allow or deny: Allow, or Deny with NoPrompt
	NoPrompt bool     // nobody is there to be asked; Unasked is the answer
	AllHosts bool     // network without a list
	Login    *Login   // of the agent that runs; nil for none
	Reveals  policy.Reveals
	// says whether a process runs a program that nothing inside could have changed; nil where nobody can tell
	Runs func(pid int, exe, program string) bool
	// paths that do not exist for who reads them, without a question: an agent's shells look for them with each command
	Unread []string
	Hosts  []peer.Pattern // network.hosts
	Labels *Labels        // nil: nothing has one
	// Acts says why a place decides what runs outside of the sandbox, "" of any other: planner.Input.Acts. May be nil.
	Acts  func(p string) string
	Bases BaseDirs // of the person, for scope app
}

// Login is what an agent signs in with: a rule shows it, and only to the agent's own programs.
type Login struct {
	Patterns []pathname.Pattern
	Agent    string
	Own      func(pid int, exe string) bool // says whether a program is the agent's; nil where nobody can tell
}

// holds says whether a path is a part of the login.
func (l *Login) holds(p string) bool {
	if l == nil {
		return false
	}
	for _, x := range l.Patterns {
		if x.MatchTree(p) {
			return true
		}
	}
	return false
}

// Decide answers a question. A link is allowed only if both the name and what it leads to are.
func Decide(a Ask, env Env) Verdict {
	a = a.normal()
	if why := a.malformed(); why != "" {
		return Verdict{Errno: int(syscall.EINVAL), Reason: why}
	}
	if a.Op == Decoy {
		return env.decoy(a)
	}
	return env.labelled(a, both(a, env))
}

// both decides about a name and about what it leads to.
func both(a Ask, env Env) Verdict {
	v := one(a, env)
	if a.Target == "" || a.Target == a.Path {
		return v
	}
	b := a
	b.Path, b.Target = a.Target, ""
	w := one(b, env)
	// A refusal tells which of the two it is about; otherwise the object counts, not the name.
	if v.Decision == Deny {
		return v
	}
	if w.Decision <= v.Decision {
		return w
	}
	v.Path, v.Scope, v.Whole = a.Target, File, v.Whole && w.Whole
	return v
}

func (a Ask) has(flag string) bool {
	for _, f := range a.Flags {
		if f == flag {
			return true
		}
	}
	return false
}

// normal settles the kind: reaching a socket is connecting to it, however its name is opened.
func (a Ask) normal() Ask {
	if a.Kind == "" {
		a.Kind = policy.KindPath
	}
	if a.Kind == policy.KindPath && a.has("socket") {
		a.Kind, a.Op = policy.KindSocket, "connect"
	}
	if a.Kind == policy.KindExec {
		a.Op = "exec"
	}
	return a
}

// malformed refuses names with two readings before anything is compared with them.
func (a Ask) malformed() string {
	if a.Kind == policy.KindHost {
		if _, err := peer.Parse(a.Host); err != nil {
			return err.Error()
		}
		if a.Port < 0 || a.Port > 65535 {
			return "the port is out of range"
		}
		return ""
	}
	for _, p := range []string{a.Path, a.Target} {
		if p == "" && p != a.Path || a.Kind == policy.KindSocket && strings.HasPrefix(p, "@") && len(p) > 1 {
			continue
		}
		if clean, err := pathname.Clean(p); err != nil || clean != p {
			return "the path is not absolute and clean"
		}
	}
	return ""
}

func (a Ask) access() policy.Access {
	if a.Kind == policy.KindHost || a.Kind == policy.KindSocket {
		return policy.Connect
	}
	acc := policy.AccessOf(a.Op)
	if acc == policy.Connect {
		return policy.Write
	}
	return acc
}

func (a Ask) query(now time.Time) policy.Query {
	q := policy.Query{Kind: a.Kind, Path: a.Path, Port: a.Port, Access: a.access(), Now: now}
	if a.Kind == policy.KindHost {
		q.Host, _ = peer.Parse(a.Host)
	}
	return q
}

// one decides about a single name. The order is the policy: hidden things, this session's refusals, rules, this
// session's grants, what the profile opens, known probes, and only then the human.
func one(a Ask, env Env) Verdict {
	if a.Kind != policy.KindHost && a.Kind != policy.KindSocket && env.Reveals.Concerns(a.Path) {
		return env.secret(a)
	}
	q := a.query(env.Now)
	rule, ruled := env.ruled(q)
	if h := env.hidden(a); h != nil && (h.Sealed() || !(ruled && h.Explicit(rule))) {
		return hiddenVerdict(a, h)
	}
	login := a.Kind != policy.KindHost && a.Kind != policy.KindSocket && env.Login.holds(a.Path)
	if login && (env.Login.Own == nil || !env.Login.Own(a.PID, a.Exe)) {
		return Verdict{Errno: int(syscall.EACCES), Life: LifeOnce, Rule: a.Path, Origin: "agent " + env.Login.Agent,
			Reason: "hidden: the login of " + env.Login.Agent + ", which its own programs alone may have"}
	}
	final := ruled && rule.Final
	g, granted := env.Grants.Lookup(a, env.Now)
	if granted && !g.Allow && !final {
		return Verdict{Errno: int(syscall.EACCES), Reason: "refused earlier in this session", Life: g.Life, Until: g.Until}
	}
	if ruled && rule.Decision == policy.Deny {
		return env.named(Verdict{Errno: int(syscall.EACCES), Reason: reason(rule, "denied by rule"), Life: Forever}, rule)
	}
	if a.Op == CallOnHost {
		env.Unasked = Deny
		return env.unsettled(a, rule, ruled && rule.Decision == policy.Ask)
	}
	if ruled && rule.Decision == policy.Allow {
		return env.allowed(a, rule, login)
	}
	if granted && !(ruled && final) && (g.Scope == File || a.Kind == policy.KindHost || !env.apart(a, g.Name)) {
		return env.grantVerdict(a, g)
	}
	if v, ok := env.given(a); ok && !ruled {
		return v
	}
	if a.Kind == policy.KindHost && !ruled && env.hostListed(q) {
		return Verdict{Decision: Allow, Scope: File, Life: Session, Reason: "allowed by network.hosts", Path: a.name()}
	}
	if p, ok := probe(a); ok && !ruled {
		return Verdict{Errno: p.Errno, Silent: true, Reason: p.Reason, Rule: p.Path, Origin: "built-in probe list"}
	}
	if a.Kind == policy.KindPath && !ruled && a.access() != policy.Write && slices.Contains(env.Unread, a.Path) {
		return Verdict{Errno: int(syscall.ENOENT), Silent: true, Reason: "a shell's start-up file; fs.shell_files shows it"}
	}
	return env.unsettled(a, rule, ruled)
}

// allowed is what a rule allows. What is a login is allowed by itself and once: the next one may be another program.
func (env Env) allowed(a Ask, rule policy.Rule, login bool) Verdict {
	v := env.named(Verdict{Decision: Allow, Reason: reason(rule, "allowed by rule"), Life: Forever}, rule)
	v.Scope, v.Path = File, a.name()
	if !rule.Expires.IsZero() {
		v.Life, v.Until = Until, rule.Expires
	}
	if login {
		v.Life = LifeOnce
		return v
	}
	if dir, ok := rule.Path().Tree(); ok && a.Kind != policy.KindHost && rule.Access != policy.List {
		v.Whole = a.has("dir") && env.clean(a.Path, a.access())
		if env.clean(dir, a.access()) {
			v.Scope, v.Path = Tree, dir
		}
	}
	return v
}

// ruled is the rule about q. One that passes over a place is none.
func (env Env) ruled(q policy.Query) (policy.Rule, bool) {
	if env.Policy == nil {
		return policy.Rule{}, false
	}
	rule, ok := env.Policy(q)
	if ok && rule.Decision == policy.Allow && q.Access == policy.Write && rule.Passes(q.Path, env.Acts) != "" {
		return policy.Rule{}, false
	}
	return rule, ok
}

func (env Env) named(v Verdict, r policy.Rule) Verdict {
	v.Rule, v.Origin = r.String(), r.Origin.String()
	return v
}

func reason(r policy.Rule, otherwise string) string {
	if r.Reason != "" {
		return r.Reason
	}
	return otherwise
}

// hidden finds the entry that hides a.
func (env Env) hidden(a Ask) *policy.Hiding {
	if a.Kind == policy.KindHost {
		return nil
	}
	return policy.HiddenBy(env.Hidden, a.Kind, a.Path)
}

func hiddenVerdict(a Ask, h *policy.Hiding) Verdict {
	v := Verdict{Errno: int(syscall.ENOENT), Life: Forever, Reason: "hidden: " + h.Reason, Rule: h.Pattern,
		Origin: h.Origin.String()}
	if a.Kind == policy.KindSocket {
		v.Errno = int(syscall.EACCES)
		if h.OrgOnly {
			v.Reason += "; only the org policy can open it"
		}
	}
	if p, ok := probe(a); ok {
		v.Errno, v.Silent = p.Errno, true
	}
	return v
}

// clean reports that opening up all of dir would open nothing hidden or ruled out.
func (env Env) clean(dir string, a policy.Access) bool {
	for i := range env.Hidden {
		if h := &env.Hidden[i]; h.Rule.Below(dir) || h.Rule.MatchTree(dir) {
			return false
		}
	}
	for i := 0; env.Login != nil && i < len(env.Login.Patterns); i++ {
		if p := env.Login.Patterns[i]; p.Below(dir) || p.MatchTree(dir) {
			return false
		}
	}
	for _, p := range env.Asks {
		// A pattern that is about all of dir has just been answered; one about a part of it has not.
		if p.Below(dir) && !p.MatchTree(dir) {
			return false
		}
	}
	if env.unlike(dir) {
		return false
	}
	return dir != "/" && (env.Restricts == nil || !env.Restricts(dir, a, env.Now)) && !env.Grants.deniedBelow(dir, env.Now)
}

func (env Env) grantVerdict(a Ask, g Grant) Verdict {
	v := Verdict{Decision: Allow, Scope: File, Life: g.Life, Until: g.Until, Reason: "granted in this session",
		Path: a.name()}
	if g.Scope != Tree || g.Access == policy.List {
		return v
	}
	v.Whole = a.has("dir") && env.clean(a.Path, a.access())
	if env.clean(g.Name, a.access()) {
		v.Scope, v.Path = Tree, g.Name
	}
	return v
}

// apart says whether something asks about a for another reason than about dir, above it, which was allowed with
// what is in it.
func (env Env) apart(a Ask, dir string) bool {
	for _, p := range env.Asks {
		if p.MatchTree(a.Path) && !p.MatchTree(dir) {
			return true
		}
	}
	if env.Policy == nil {
		return false
	}
	r, ok := env.Policy(a.query(env.Now))
	if !ok || r.Decision != policy.Ask {
		return false
	}
	above := Ask{Kind: a.Kind, Op: a.Op, Path: dir}
	w, ok := env.Policy(above.query(env.Now))
	return !ok || w.String() != r.String() || w.Origin != r.Origin
}

func (env Env) hostListed(q policy.Query) bool {
	for _, h := range env.Hosts {
		if h.Match(q.Host, q.Port, false) {
			return true
		}
	}
	return env.AllHosts
}

// name is the key under which a is granted.
func (a Ask) name() string {
	if a.Kind != policy.KindHost {
		return a.Path
	}
	h, err := peer.Parse(a.Host)
	if err != nil {
		return ""
	}
	return h.String()
}
