//go:build linux

package prompt

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// joined takes the breaks between rows out again.
func joined(rows []string, indent int) string {
	var b strings.Builder
	for i, r := range rows {
		if i > 0 {
			r = strings.TrimPrefix(r, strings.Repeat(" ", indent))
		}
		b.WriteString(r)
	}
	return b.String()
}

// TestLongQuestionsWrap: at every width the question has the whole path and all keys, and none of sbx's words is cut.
func TestLongQuestionsWrap(t *testing.T) {
	name := "/home/u/" + strings.Repeat("deep/", 30) + "file-of-" + strings.Repeat("x", 90)
	q := Question{Exe: "/usr/bin/cat", Op: "open", Path: name, Walk: "/home/u", Everyone: true}
	for _, width := range []int{24, 30, 40, 60, 80, 130, 200} {
		rows := (Style{Width: width, Home: "/home/u", Word: "kobalu"}).Lines(q, 20)
		for _, r := range rows {
			if len(r) > width || !ascii(r) {
				t.Errorf("%d columns: %q", width, r)
			}
		}
		got := joined(rows, 2)
		for _, want := range []string{"[kobalu] cat wants to read ", "~" + strings.TrimPrefix(name, "/home/u"),
			" while it goes through ~/", "[o]nce (all, 2 s) ", "[s]ession ", "[f]orever / [d]ir [t]ree [w]alk / ", "[n]o / ",
			"ne[v]er [?]"} {
			if !strings.Contains(got, want) {
				t.Errorf("%d columns lack %q:\n%s", width, want, strings.Join(rows, "\n"))
			}
		}
	}
}

// TestNamesBeyondTheScreenAreShortened: a name that would fill the screen is told from another by its hash; the words
// and keys stay whole.
func TestNamesBeyondTheScreenAreShortened(t *testing.T) {
	x := Question{Exe: "/bin/cat", Op: "open", Path: "/srv/" + strings.Repeat("a", 3000) + "1/end"}
	y := x
	y.Path = strings.Replace(x.Path, "1/end", "2/end", 1)
	for _, width := range []int{40, 60, 80, 132, 200} {
		a, b := (Style{Width: width}).Lines(x, 6), (Style{Width: width}).Lines(y, 6)
		if len(a) > 9 || !strings.Contains(joined(a, 2), "..#") || strings.Join(a, "") == strings.Join(b, "") {
			t.Errorf("width %d: %q, %q", width, a, b)
		}
		if !strings.Contains(joined(a, 2), "ne[v]er [?]") {
			t.Errorf("width %d: %q", width, a)
		}
	}
}

// TestDetailsAreWhole: behind ? every name stands to its last byte, on as many pages as the screen needs.
func TestDetailsAreWhole(t *testing.T) {
	name := "/srv/" + strings.Repeat("a b/", 900) + "end"
	q := Question{Exe: "/bin/cat", Op: "open", Path: name, Cwd: "/", Target: name + "/target"}
	for _, width := range []int{40, 80, 130} {
		got := joined((Style{Width: width}).Details(q), len("  o     "))
		for _, want := range []string{quote(name), quote(name + "/target")} {
			if !strings.Contains(strings.ReplaceAll(got, "        ", ""), want) {
				t.Errorf("width %d: %.300s", width, got)
			}
		}
	}
	synctest.Test(t, func(t *testing.T) {
		f, queue := newFake(), NewQueue(Options{})
		(&TTY{Screen: f, Style: Style{Word: "kobalu"}}).Start(t.Context(), queue)
		c := ask(queue, read(name))
		time.Sleep(time.Second)
		var all strings.Builder
		for i := 1; ; i++ {
			f.keys <- '?'
			time.Sleep(100 * time.Millisecond)
			if !strings.Contains(f.last(), fmt.Sprintf("  page %d/", i)) {
				break
			}
			if rows := strings.Split(f.last(), "\n"); len(rows) > 22 {
				t.Errorf("%d rows", len(rows))
			}
			for _, r := range strings.Split(f.last(), "\n") {
				if strings.HasPrefix(r, "  page ") {
					break
				}
				all.WriteString(strings.TrimPrefix(r, "        "))
			}
		}
		if !strings.Contains(all.String(), quote(name)) || !strings.Contains(all.String(), "written to your policy") {
			t.Errorf("%s", all.String())
		}
		f.keys <- 'n'
		<-c
		queue.Close()
	})
}

// TestNoticesWrap: what sbx says by itself is not shortened either.
func TestNoticesWrap(t *testing.T) {
	rows := (Style{Width: 40}).wrap("[kobalu] too many questions: accesses are denied without asking", 2)
	if len(rows) != 2 || joined(rows, 2) != "[kobalu] too many questions: accesses are denied without asking" {
		t.Errorf("%q", rows)
	}
}
