package manpage

import (
	"slices"
	"strings"

	"sbx.example/sbx/broker/internal/option"
	"sbx.example/sbx/broker/internal/policy"
)

// Names are the pages that there are.
func Names() []string {
	var names []string
	for _, p := range manualPages() {
		names = append(names, p.name)
	}
	return names
}

// Write is one page; ok is false where there is none of that name.
func Write(name, version string, table []option.Command) (text string, ok bool) {
	for _, p := range manualPages() {
		if p.name == name {
			return p.write(&manual{version, table}), true
		}
	}
	return "", false
}

// manual is what the pages are about.
type manual struct {
	version string
	table   []option.Command
}

type manualPage struct {
	name  string // sbx.1
	write func(*manual) string
}

func manualPages() []manualPage {
	return []manualPage{{"sbx.1", (*manual).sbx}, {"sbx-run.1", (*manual).run}, {"sbx.toml.5", (*manual).config}}
}

// roff is text of a manual page in the making.
type roff struct{ strings.Builder }

// escape makes text that man(7) shows as it is.
func escape(s string) string {
	return strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "~", `\(ti`, "^", `\(ha`, "`", `\(ga`).Replace(s)
}

func (r *roff) line(macro, text string) {
	r.WriteString(macro + " " + strings.TrimSpace(text) + "\n")
}

func (r *roff) text(s string) {
	s = escape(s)
	if strings.HasPrefix(s, ".") {
		s = `\&` + s
	}
	r.WriteString(s + "\n")
}

// item is a tagged paragraph.
func (r *roff) item(tag, text string) {
	r.WriteString(".TP\n.B ")
	r.text(tag)
	r.text(text)
}

// command is a command with its options, unless a page of its own has them, and its verbs.
func (r *roff) command(c *option.Command) {
	r.item(strings.TrimSpace("sbx "+c.Name+" "+c.Args), option.Sentence(c.Help))
	if c.Name != "run" && len(c.Rows) > 0 {
		r.WriteString(".RS\n")
		for _, o := range c.Rows {
			if !c.Borrows || o.Group == "" {
				r.item(o.Synopsis(), option.Sentence(o.Help))
			}
		}
		r.WriteString(".RE\n")
	}
	for i := range c.Verbs {
		r.command(&c.Verbs[i])
	}
}

func (m *manual) header(title, section, name, what string) *roff {
	r := &roff{}
	r.line(".TH", title+" "+section+` "" "sbx `+m.version+`" "sbx"`)
	r.line(".SH", "NAME")
	r.text(name)
	r.WriteString(`\- `)
	r.text(what)
	return r
}

func (r *roff) seeAlso(pages ...string) string {
	r.line(".SH", "SEE ALSO")
	for i, p := range pages {
		name, section, _ := strings.Cut(p, "(")
		end := ","
		if i == len(pages)-1 {
			end = ""
		}
		r.line(".BR", escape(name)+" ("+section+end)
	}
	return r.String()
}

func (m *manual) sbx() string {
	r := m.header("SBX", "1", "sbx", "run commands in a hardened local sandbox")
	r.line(".SH", "SYNOPSIS")
	r.line(".B", "sbx")
	r.text("COMMAND ...")
	r.line(".SH", "DESCRIPTION")
	r.text("sbx runs agent tools and developer commands in a sandbox that still feels like one's own machine: same " +
		"paths, same tools, caches usable at once. The host is read-only, secrets do not exist inside, there is no " +
		"network unless it is asked for, and the first access to anything that is not granted waits until a human says " +
		"yes or no.")
	r.line(".SH", "COMMANDS")
	for _, c := range m.table {
		r.command(&c)
	}
	r.line(".SH", "EXIT STATUS")
	r.text("That of the command; 128+N if signal N ended it; 124 after a time-out; 125 if the sandbox could not be " +
		"built or was refused, in which case nothing ran; 126 if the command cannot be executed, 127 if it does not exist.")
	r.line(".SH", "FILES")
	for _, f := range [][2]string{
		{"/etc/sbx/config.toml, /etc/sbx/policy.toml",
			"The organisation's settings and rules. They must be root's and writable by nobody else."},
		{"/etc/sbx/helper.toml", "Who may use sbx-helper, see sbx-helper(8)."},
		{"~/.config/sbx/config.toml, ~/.config/sbx/policy.toml", "The user's (below $XDG_CONFIG_HOME)."},
		{"PROJECT/.sbx/config.toml, PROJECT/.sbx/policy.toml", "The project's. Until it is trusted it can only narrow."},
		{"~/.local/state/sbx/sessions/SID", "Each session's plan, transcript and kept layers (below $XDG_STATE_HOME)."},
		{"~/.local/state/sbx/audit/SID.jsonl", "Each session's log of decisions."},
	} {
		r.item(f[0], f[1])
	}
	return r.seeAlso("sbx-run(1)", "sbx.toml(5)", "sbx-policy(5)", "sbx-helper(8)")
}

func (m *manual) run() string {
	r := m.header("SBX-RUN", "1", "sbx-run", "run a command in a new sandbox")
	r.line(".SH", "SYNOPSIS")
	r.line(".B", "sbx run")
	r.text("[OPTIONS] [--] CMD [ARG...]")
	r.line(".SH", "DESCRIPTION")
	r.text("Runs CMD (by default $SHELL) in a new sandbox and exits with its status. An option that has a setting of " +
		"the same meaning in sbx.toml(5) goes before what the files say, unless the organisation locked the setting.")
	var c option.Command
	for _, c = range m.table {
		if c.Name == "run" {
			break
		}
	}
	group := ""
	for _, o := range c.Options() {
		if o.Group != group {
			group = o.Group
			r.line(".SH", strings.ToUpper(group))
		}
		help := o.Help + "."
		first := strings.FieldsFunc(help, func(r rune) bool { return r == ' ' || r == ',' })
		if !slices.Contains(o.Choices, first[0]) { // values stay as they are typed
			help = option.Sentence(help)
		}
		if o.Key != "" {
			help += " Setting: " + o.Key + "."
		}
		r.item(o.Synopsis(), help)
	}
	return r.seeAlso("sbx(1)", "sbx.toml(5)", "sbx-policy(5)")
}

func (m *manual) config() string {
	r := m.header("SBX.TOML", "5", "sbx.toml", "settings of sbx")
	r.line(".SH", "DESCRIPTION")
	r.text("Settings are TOML files at three levels, config.toml in /etc/sbx, in ~/.config/sbx and in PROJECT/.sbx; " +
		"options of the command line come last. A setting that /etc/sbx marks as locked cannot be changed by the others; " +
		"a project that is not trusted can only narrow. A key that does not exist is an error. sbx config show prints " +
		"every setting with where it comes from.")
	table := ""
	for _, d := range policy.Describe() {
		section, name, _ := strings.Cut(d.Key, ".")
		if section != table {
			table = section
			r.line(".SH", escape("["+table+"]"))
		}
		r.item(name, d.Help+" Takes "+d.Values+".")
	}
	r.line(".SH", "[profiles.NAME]")
	r.text("A profile of one's own: extends = \"strict\", \"moderate\" or \"permissive\", and the settings of [fs], " +
		"[network], [limits] and [env] that differ.")
	return r.seeAlso("sbx(1)", "sbx-run(1)", "sbx-policy(5)")
}
