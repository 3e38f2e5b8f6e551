package integrate

import (
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
func (h *Host) gooseExtensions(text string) ([]byte, error) {
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
			entry, err := h.gooseEntry(lines[i:end], strings.Trim(line[indent:len(line)-1], `"'`))
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

// gooseEntry is one extension: lines[0] is its name.
func (h *Host) gooseEntry(lines []string, name string) ([]string, error) {
	cmd, args, stdio := -1, -1, false
	for i, l := range lines {
		key, value, _ := strings.Cut(strings.TrimSpace(l), ":")
		value = strings.TrimSpace(value)
		switch key {
		case "type":
			stdio = stdio || strings.Trim(value, `"'`) == "stdio"
		case "cmd":
			cmd = i
		case "args":
			if args = i; value != "" && value != "[]" {
				return nil, errors.New("its arguments are not written a line each")
			}
		}
	}
	if !stdio || cmd < 0 {
		return lines, nil // built in, or reached over a network
	}
	at := lines[cmd][:strings.Index(lines[cmd], "cmd")]
	old := strings.TrimSpace(lines[cmd][len(at)+len("cmd:"):])
	if old == "" || strings.ContainsAny(old, "|>&*!#{[") {
		return nil, fmt.Errorf("its command %q is not a plain word", old)
	}
	if strings.Trim(old, `"'`) == h.Sbx {
		return lines, nil
	}
	before := []string{at + "args:\n"}
	for _, w := range h.call(serverWords(name)...)[1:] {
		before = append(before, at+"- "+yamlString(w)+"\n")
	}
	before = append(before, at+"- "+old+"\n")
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
