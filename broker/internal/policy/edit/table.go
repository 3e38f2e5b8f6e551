package edit

import (
	"bytes"
	"strings"

	"sbx.example/sbx/broker/internal/policy/tomlscan"
)

// Table puts a table in the place of the one of that name, "section.name", or at the end. No lines take it out. What
// stands before its header as a comment stays.
func Table(old []byte, name string, lines []string) ([]byte, error) {
	stmts, err := tomlscan.Scan(old)
	if err != nil {
		return nil, err
	}
	text := bytes.SplitAfter(old, []byte("\n"))
	from, to := len(text), len(text)
	for i, st := range stmts {
		if from == len(text) && st.Header && !st.Array && st.Key == name {
			from = st.Line - 1
			continue
		}
		if from < len(text) && st.Header && i > 0 && st.Key != name && !strings.HasPrefix(st.Key, name+".") {
			to = st.Line - 1
			break
		}
	}
	for to > from && to < len(text) { // comments above the next table are that table's
		if line := bytes.TrimSpace(text[to-1]); len(line) > 0 && line[0] != '#' {
			break
		}
		to--
	}
	out := bytes.Join(text[:from], nil)
	if len(lines) > 0 {
		if len(out) > 0 {
			if out[len(out)-1] != '\n' {
				out = append(out, '\n')
			}
			if !bytes.HasSuffix(out, []byte("\n\n")) {
				out = append(out, '\n')
			}
		}
		out = append(out, "["+name+"]\n"+strings.Join(lines, "\n")+"\n"...)
	}
	return append(out, bytes.Join(text[to:], nil)...), nil
}
