package integrate

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// gooseFile changes goose's configuration, which is YAML. What is not surely understood is refused: block style, one
// scalar a line, as goose writes it itself.
func gooseFile(h *Host, _ string) ([]file, error) {
	return []file{{path: h.Config + "/goose/config.yaml", edit: func(e *edit) (err error) {
		if e.text == nil {
			return errors.New("there is none: goose configure writes it")
		}
		e.text, err = h.gooseExtensions(string(e.text))
		return err
	}}}, nil
}

// gooseExtensions puts sbx before the command of each stdio extension.
func (h *Host) gooseExtensions(text string) ([]byte, error) { return eachExtension(text, h.gooseEntry) }

// eachExtension has each extension of a configuration changed: lines[0] is its name.
func eachExtension(text string, change func(lines []string, name string) ([]string, error)) ([]byte, error) {
	lines := strings.SplitAfter(text, "\n")
	var out []string
	within := false
	for i := 0; i < len(lines); {
		line := strings.TrimRight(lines[i], "\r\n")
		indent := len(line) - len(strings.TrimLeft(line, " "))
		switch {
		case strings.ContainsRune(line, '\t'):
			return nil, fmt.Errorf("line %d has a tab, which YAML does not indent with", i+1)
		case indent == 0 && strings.TrimSpace(line) != "" && line[0] != '#':
			if within = line == "extensions:"; !within && strings.HasPrefix(line, "extensions:") &&
				strings.TrimSpace(line) != "extensions: {}" {
				return nil, fmt.Errorf("line %d: extensions are not written a line each", i+1)
			}
		case within && indent > 0 && strings.HasSuffix(line, ":") && line[indent] != '#':
			end := entryEnd(lines, i+1, indent)
			entry, err := change(lines[i:end], strings.Trim(line[indent:len(line)-1], `"'`))
			if err != nil {
				return nil, fmt.Errorf("the extension of line %d: %w", i+1, err)
			}
			out, i = append(out, entry...), end
			continue
		}
		out, i = append(out, lines[i]), i+1
	}
	return []byte(strings.Join(out, "")), nil
}

// entryEnd is the first line from i on that is indented no more than an entry's name.
func entryEnd(lines []string, i, indent int) int {
	for ; i < len(lines); i++ {
		text := strings.TrimRight(lines[i], "\r\n")
		if t := strings.TrimLeft(text, " "); t != "" && len(text)-len(t) <= indent {
			break
		}
	}
	return i
}

// extension is one that goose starts as a program.
type extension struct {
	lines     []string
	cmd, args int    // the lines of these keys; -1: there is none
	at        string // what its keys are indented by
	program   string // as it is written
}

// parseExtension reads one; nil: it is built in, or reached over a network.
func parseExtension(lines []string) (*extension, error) {
	e, stdio := extension{lines: lines, cmd: -1, args: -1}, false
	for i, l := range lines {
		key, value, _ := strings.Cut(strings.TrimSpace(l), ":")
		value = strings.TrimSpace(value)
		switch key {
		case "type":
			stdio = stdio || strings.Trim(value, `"'`) == "stdio"
		case "cmd":
			e.cmd = i
		case "args":
			if e.args = i; value != "" && value != "[]" {
				return nil, errors.New("its arguments are not written a line each")
			}
		}
	}
	if !stdio || e.cmd < 0 {
		return nil, nil
	}
	e.at = lines[e.cmd][:strings.Index(lines[e.cmd], "cmd")]
	e.program = strings.TrimSpace(lines[e.cmd][len(e.at)+len("cmd:"):])
	if e.program == "" || strings.ContainsAny(e.program, "|>&*!#{[") {
		return nil, fmt.Errorf("its command %q is not a plain word", e.program)
	}
	return &e, nil
}

// gooseEntry puts sbx before the command of an extension.
func (h *Host) gooseEntry(lines []string, name string) ([]string, error) {
	e, err := parseExtension(lines)
	if err != nil || e == nil || yamlText(e.program) == h.Sbx {
		return lines, err
	}
	at, cmd, args := e.at, e.cmd, e.args
	before := []string{at + "args:\n"}
	for _, w := range h.call(serverWords(name)...)[1:] {
		before = append(before, at+"- "+yamlString(w)+"\n")
	}
	before = append(before, at+"- "+e.program+"\n")
	var out []string
	for i, l := range lines {
		switch {
		case i == cmd:
			out = append(out, at+"cmd: "+yamlString(h.Sbx)+"\n")
			if args < 0 {
				out = append(out, before...)
			}
		case i == args:
			out = append(out, before...)
		default:
			out = append(out, l)
		}
	}
	return out, nil
}

// yamlString is a text in double quotes, which YAML reads as JSON does.
func yamlString(s string) string { return jsString(s) }

// yamlText is the text of a plain or quoted word.
func yamlText(s string) string {
	var text string
	switch {
	case len(s) > 1 && s[0] == '"' && json.Unmarshal([]byte(s), &text) == nil:
		return text
	case len(s) > 1 && s[0] == '\'' && s[len(s)-1] == '\'':
		return strings.ReplaceAll(s[1:len(s)-1], "''", "'")
	}
	return s
}

// items are the arguments of an extension as they are written.
func (e *extension) items() (out []string) {
	for _, l := range e.lines[e.args+1:] {
		item, ok := strings.CutPrefix(strings.TrimSpace(l), "- ")
		if e.args < 0 || !ok {
			break
		}
		out = append(out, strings.TrimSpace(item))
	}
	return out
}

// served are the name by which sbx starts an extension's program, and how many arguments come before that; 0: sbx does
// not start it.
func (e *extension) served() (name string, before int) {
	words := e.items()
	for i, w := range words {
		words[i] = yamlText(w)
	}
	name, line, _ := serverOf(words)
	if line == nil {
		return "", 0
	}
	return name, len(words) - len(line)
}

// withoutSbx takes sbx away again from the extensions of a configuration that had none before it, in old. Whatever else
// has become of them stays, also where goose itself has written all anew. Taken: it was there.
func withoutSbx(now, old string) (text []byte, taken bool) {
	was := map[string]*extension{}
	_, err := eachExtension(old, func(lines []string, name string) ([]string, error) {
		e, err := parseExtension(lines)
		was[name] = e
		return lines, err
	})
	if err != nil {
		return []byte(now), false
	}
	text, err = eachExtension(now, func(lines []string, _ string) ([]string, error) {
		e, err := parseExtension(lines)
		if err != nil || e == nil {
			return lines, err
		}
		name, before := e.served()
		if before == 0 || was[name] == nil {
			return lines, nil
		}
		if _, own := was[name].served(); own > 0 {
			return lines, nil
		}
		taken = true
		return e.without(before, was[name]), nil
	})
	if err != nil {
		return []byte(now), false
	}
	return text, taken
}

// without is the extension without the arguments before its own program, which is its command again.
func (e *extension) without(before int, was *extension) (out []string) {
	items := e.items()
	for i, l := range e.lines {
		switch {
		case i == e.cmd:
			out = append(out, e.at+"cmd: "+items[before]+"\n")
		case i == e.args && len(items) == before+1: // there are no others
			if was.args >= 0 {
				out = append(out, was.lines[was.args])
			}
		case i > e.args && i <= e.args+before+1:
		default:
			out = append(out, l)
		}
	}
	return out
}
