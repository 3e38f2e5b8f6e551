package changes

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

const context = 3 // lines around a difference

// Unified is the difference between two texts of a file, as a unified diff; nil is no file.
func Unified(name string, old, now []byte) string {
	an, bn := gitName(name), gitName(name)
	if old == nil {
		an = "/dev/null"
	}
	if now == nil {
		bn = "/dev/null"
	}
	var w bytes.Buffer
	fmt.Fprintf(&w, "--- %s\n+++ %s\n", an, bn)
	hunks(&w, compare(lines(old), lines(now)))
	return w.String()
}

// gitName quotes a path as git does (core.quotePath), and one in which a name ends with a space: where git finds no
// name below a header, it looks for both in that line, and takes the space for what is between.
func gitName(p string) string {
	q := strconv.QuoteToASCII(p)
	if q == `"`+p+`"` && !strings.Contains(p+"/", " /") {
		return p
	}
	var b strings.Builder
	b.WriteByte('"')
	for i := 0; i < len(p); i++ {
		switch c := p[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\t':
			b.WriteString(`\t`)
		case c < 0x20 || c >= 0x7f:
			fmt.Fprintf(&b, `\%03o`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// lines cuts a text after each newline.
func lines(b []byte) []string {
	list := strings.SplitAfter(string(b), "\n")
	if list[len(list)-1] == "" {
		list = list[:len(list)-1]
	}
	return list
}

// hunks writes the edits with the lines around them.
func hunks(w *bytes.Buffer, list []edit) {
	oldLine, newLine := 1, 1
	for i := 0; i < len(list); {
		if list[i].op == ' ' {
			i, oldLine, newLine = i+1, oldLine+1, newLine+1
			continue
		}
		from := max(i-context, 0)
		end := i
		for last := i; end < len(list) && end-last <= 2*context; end++ {
			if list[end].op != ' ' {
				last = end
			}
		}
		for end > i && list[end-1].op == ' ' {
			end--
		}
		end = min(end+context, len(list))
		oldLine, newLine = oldLine-(i-from), newLine-(i-from)
		var a, b int
		for _, e := range list[from:end] {
			if e.op != '+' {
				a++
			}
			if e.op != '-' {
				b++
			}
		}
		fmt.Fprintf(w, "@@ -%s +%s @@\n", span(oldLine, a), span(newLine, b))
		for _, e := range list[from:end] {
			w.WriteByte(e.op)
			w.WriteString(strings.TrimSuffix(e.line, "\n"))
			w.WriteByte('\n')
			if !strings.HasSuffix(e.line, "\n") {
				w.WriteString("\\ No newline at end of file\n")
			}
		}
		oldLine, newLine, i = oldLine+a, newLine+b, end
	}
}

func span(line, n int) string {
	if n == 0 {
		line--
	}
	if n == 1 {
		return strconv.Itoa(line)
	}
	return fmt.Sprintf("%d,%d", line, n)
}
