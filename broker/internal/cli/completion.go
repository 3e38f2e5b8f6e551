package cli

import (
	"slices"
	"strings"
)

// Completions are made from the command table and the option table, so that they cannot fall behind.

func cmdCompletion(t *term, args []string) int {
	if len(args) == 1 {
		switch args[0] {
		case "bash":
			t.print(completeBash())
			return 0
		case "zsh":
			t.print(completeZsh())
			return 0
		case "fish":
			t.print(completeFish())
			return 0
		}
	}
	return t.fail(&usageError{"sbx completion wants a shell: bash, zsh or fish", "for bash: sbx completion bash > ~/.local/share/bash-completion/completions/sbx"})
}

// words are what can follow a command: its verbs and its options, as its row's synopsis has them.
func (c *command) words() []string {
	if c.name == "run" {
		var out []string
		for _, o := range runOptions() {
			out = append(out, "--"+o.name)
		}
		return out
	}
	first, _, _ := strings.Cut(c.args, " ")
	var out []string
	for _, verb := range strings.Split(first, "|") {
		if verb != "" && strings.Trim(verb, "abcdefghijklmnopqrstuvwxyz-") == "" {
			out = append(out, verb)
		}
	}
	for _, w := range strings.FieldsFunc(c.args, func(r rune) bool { return strings.ContainsRune(" []|=", r) }) {
		if strings.HasPrefix(w, "--") {
			out = append(out, w)
		}
	}
	slices.Sort(out)
	return slices.Compact(append(out, "--help"))
}

// takesSession says whether a command's argument is the name of a session.
func (c *command) takesSession() bool { return strings.Contains(c.args, "SID") && c.name != "run" }

// choices are the values of a run option, read off its help: "static or dynamic", "a, b or c".
func (o *option) choices() []string {
	text := o.help
	if _, after, ok := strings.Cut(text, ": "); ok {
		text = after
	}
	var out []string
	for w := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ' ' || r == ',' || r == ';' }) {
		if w == "or" || w == "and" {
			continue
		}
		if o.arg == "" || !o.accepts(w) {
			continue
		}
		out = append(out, w)
	}
	return out
}

// accepts says whether an option that has a fixed set of values takes w.
func (o *option) accepts(w string) bool {
	return o.set(&request{}, w) == nil && o.set(&request{}, "\x01no such value") != nil
}

func completeBash() string {
	var b strings.Builder
	b.WriteString("# bash completion for sbx\n_sbx() {\n\tlocal cur prev cmd i\n\tcur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} cmd=${COMP_WORDS[1]}\n\tCOMPREPLY=()\n" +
		"\tif [ \"$COMP_CWORD\" = 1 ]; then\n\t\tCOMPREPLY=($(compgen -W \"")
	b.WriteString(strings.Join(commandNames(), " ") + "\" -- \"$cur\"))\n\t\treturn\n\tfi\n" +
		"\tif [ \"$cmd\" = run ]; then\n" +
		"\t\t# after -- or the first word that is no option comes the command itself\n" +
		"\t\tfor ((i = 2; i < COMP_CWORD; i++)); do\n\t\t\tcase ${COMP_WORDS[i]} in\n\t\t\t--)\n\t\t\t\t_sbx_command $((i + 1))\n\t\t\t\treturn\n\t\t\t\t;;\n")
	var with []string
	for _, o := range runOptions() {
		if o.arg != "" && !o.optional() {
			with = append(with, "--"+o.name)
			if o.short != "" {
				with = append(with, "-"+o.short)
			}
		}
	}
	b.WriteString("\t\t\t" + strings.Join(with, " | ") + ") i=$((i + 1)) ;;\n\t\t\t-*) ;;\n\t\t\t*)\n\t\t\t\t_sbx_command $i\n\t\t\t\treturn\n\t\t\t\t;;\n\t\t\tesac\n\t\tdone\n\t\tcase $prev in\n")
	for _, o := range runOptions() {
		switch c := o.choices(); {
		case len(c) > 0:
			b.WriteString("\t\t--" + o.name + ")\n\t\t\tCOMPREPLY=($(compgen -W \"" + strings.Join(c, " ") + "\" -- \"$cur\"))\n\t\t\treturn\n\t\t\t;;\n")
		case o.arg == "PATH" || o.arg == "DIR" || o.arg == "FILE":
			b.WriteString("\t\t--" + o.name + ")\n\t\t\tcompopt -o filenames\n\t\t\tCOMPREPLY=($(compgen -f -- \"$cur\"))\n\t\t\treturn\n\t\t\t;;\n")
		case o.arg != "" && !o.optional():
			b.WriteString("\t\t--" + o.name + ") return ;;\n")
		}
	}
	b.WriteString("\t\tesac\n\t\tcase $cur in\n\t\t-*) ;;\n\t\t*)\n\t\t\t_sbx_command $COMP_CWORD\n\t\t\treturn\n\t\t\t;;\n\t\tesac\n\tfi\n\tcase $cmd in\n")
	for _, c := range commands() {
		words := `"` + strings.Join(c.words(), " ")
		if c.takesSession() {
			words += ` $(sbx ls 2>/dev/null | awk 'NR > 1 { print $1 }')`
		}
		b.WriteString("\t" + c.name + ") COMPREPLY=($(compgen -W " + words + "\" -- \"$cur\")) ;;\n")
	}
	b.WriteString("\tesac\n}\n" +
		"_sbx_command() {\n\tif declare -F _command_offset >/dev/null; then\n\t\t_command_offset \"$1\"\n\telif [ \"$1\" = \"$COMP_CWORD\" ]; then\n\t\tCOMPREPLY=($(compgen -c -- \"${COMP_WORDS[COMP_CWORD]}\"))\n\telse\n\t\tcompopt -o filenames\n\t\tCOMPREPLY=($(compgen -f -- \"${COMP_WORDS[COMP_CWORD]}\"))\n\tfi\n}\ncomplete -F _sbx sbx\n")
	return b.String()
}

func commandNames() []string {
	var out []string
	for _, c := range commands() {
		out = append(out, c.name)
	}
	return out
}

// fishQuote makes text for the inside of '…'.
func fishQuote(s string) string { return strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(s) }

func completeFish() string {
	var b strings.Builder
	b.WriteString("# fish completion for sbx\ncomplete -c sbx -f\n")
	for _, c := range commands() {
		b.WriteString("complete -c sbx -n __fish_use_subcommand -a " + c.name + " -d '" + fishQuote(c.help) + "'\n")
	}
	for _, o := range runOptions() {
		b.WriteString("complete -c sbx -n '__fish_seen_subcommand_from run' -l " + o.name)
		if o.short != "" {
			b.WriteString(" -s " + o.short)
		}
		switch c := o.choices(); {
		case len(c) > 0:
			b.WriteString(" -x -a '" + strings.Join(c, " ") + "'")
		case o.arg == "PATH" || o.arg == "DIR" || o.arg == "FILE":
			b.WriteString(" -r -F")
		case o.arg != "" && !o.optional():
			b.WriteString(" -x")
		}
		b.WriteString(" -d '" + fishQuote(o.help) + "'\n")
	}
	b.WriteString("complete -c sbx -n '__fish_seen_subcommand_from run' -x -a '(__fish_complete_subcommand --fcs-skip=2)'\n")
	for _, c := range commands() {
		if c.name == "run" {
			continue
		}
		on := "complete -c sbx -n '__fish_seen_subcommand_from " + c.name + "' "
		for _, w := range c.words() {
			if l, ok := strings.CutPrefix(w, "--"); ok {
				b.WriteString(on + "-l " + l + "\n")
			} else {
				b.WriteString(on + "-a " + w + "\n")
			}
		}
		if c.takesSession() {
			b.WriteString(on + "-a '(sbx ls 2>/dev/null | awk \"NR > 1 { print \\$1 }\")'\n")
		}
	}
	return b.String()
}

func completeZsh() string {
	var b strings.Builder
	b.WriteString("#compdef sbx\n_sbx() {\n\tlocal -a commands\n\tcommands=(\n")
	for _, c := range commands() {
		b.WriteString("\t\t'" + c.name + ":" + zshQuote(c.help) + "'\n")
	}
	b.WriteString("\t)\n\tif (( CURRENT == 2 )); then\n\t\t_describe command commands\n\t\treturn\n\tfi\n\tlocal cmd=$words[2]\n\tshift words\n\t(( CURRENT-- ))\n\tcase $cmd in\n\trun)\n\t\t_arguments -S \\\n")
	for _, o := range runOptions() {
		names := "--" + o.name
		if o.arg != "" && !o.optional() {
			names += "="
		}
		line := "'*" + names + "[" + zshQuote(o.help) + "]"
		switch c := o.choices(); {
		case len(c) > 0:
			line += ":" + strings.ToLower(o.arg) + ":(" + strings.Join(c, " ") + ")"
		case o.arg == "PATH" || o.arg == "DIR" || o.arg == "FILE":
			line += ":" + strings.ToLower(o.arg) + ":_files"
		case o.arg != "" && !o.optional():
			line += ":" + strings.ToLower(zshQuote(o.arg)) + ": "
		}
		b.WriteString("\t\t\t" + line + "' \\\n")
	}
	b.WriteString("\t\t\t'*::command:_normal'\n\t\t;;\n")
	for _, c := range commands() {
		if c.name == "run" {
			continue
		}
		b.WriteString("\t" + c.name + ") compadd -- " + strings.Join(c.words(), " "))
		if c.takesSession() {
			b.WriteString(` ${(f)"$(sbx ls 2>/dev/null | awk 'NR > 1 { print $1 }')"}`)
		}
		b.WriteString(" ;;\n")
	}
	b.WriteString("\tesac\n}\nif [ \"$funcstack[1]\" = _sbx ]; then _sbx \"$@\"; else compdef _sbx sbx; fi\n")
	return b.String()
}

// zshQuote makes text for the inside of '…[…]' and '…:…'.
func zshQuote(s string) string {
	return strings.NewReplacer("'", "'\\''", "[", `\[`, "]", `\]`, ":", `\:`).Replace(s)
}
