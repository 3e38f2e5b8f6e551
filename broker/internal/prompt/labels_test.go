package prompt

import (
	"strings"
	"testing"
)

// A question says what of labels stands in the way, in words that a name cannot forge, and what a yes means.
func TestQuestionsAboutLabels(t *testing.T) {
	st := Style{Home: "/home/u", Width: 200}
	host := Question{Exe: "/usr/bin/node", PID: 7, Op: "connect", Host: "github.com", Port: 443,
		Labels: []string{"clients"}, Others: []string{"/home/u/clients/acme\n, node", "/home/u/clients/b"}}
	const want = `after reading "~/clients/acme\n, node" and 1 more, node wants github.com:443`
	if got := st.Wants(host); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	read := Question{Exe: "/usr/bin/node", PID: 7, Op: "read", Path: "/home/u/clients/a", Labels: []string{"clients"},
		Others: []string{"github.com"}}
	if got, want := st.Wants(read),
		"node wants to read ~/clients/a, labelled clients, after contact with github.com"; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	text := strings.Join(st.Details(host), "\n")
	for _, want := range []string{"read:   ~/clients/b", "github.com:443, which may then hear of clients, always"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in:\n%s", want, text)
		}
	}
	if text = strings.Join(st.Details(read), "\n"); !strings.Contains(text, "heard:  github.com") {
		t.Errorf("in the details of a read:\n%s", text)
	}
	for _, q := range []Question{read, host} {
		keys := longKeys(&q) + shortKeys(&q) + following('t', &q)
		if kept := strings.Contains(keys, "[f]orever"); kept != (q.Host != "") {
			t.Errorf("%s: %s", q.Op, keys)
		}
	}
	for _, row := range st.stores(&read) {
		if row[0] == "f" || row[0] == "p" {
			t.Errorf("%s is offered: %s", row[0], row[1])
		}
	}
}
