package manpage

import (
	"strings"
	"testing"

	"sbx.example/sbx/broker/internal/option"
)

// What a help text says is shown as it stands, and no line of it becomes a request of man(7).
func TestTextIsShownAsItIs(t *testing.T) {
	for text, want := range map[string]string{
		"plain words":   "plain words\n",
		"--net=off":     `\-\-net=off` + "\n",
		`a\b`:           `a\eb` + "\n",
		"it's ~ ^ `x`":  `it\(aqs \(ti \(ha \(gax\(ga` + "\n",
		".so /etc/motd": `\&.so /etc/motd` + "\n",
		"'so x":         `\(aqso x` + "\n",
	} {
		var r roff
		if r.text(text); r.String() != want {
			t.Errorf("%q is written as %q, want %q", text, r.String(), want)
		}
	}
}

func TestVerbsStandInThePageOfAllCommands(t *testing.T) {
	table := []option.Command{{Name: "policy", Args: "VERB", Help: "rules", Verbs: []option.Command{
		{Name: "policy show", Help: "list the rules"}}}}
	text, ok := Write("sbx.1", "9.8.7", table)
	for _, want := range []string{"sbx policy VERB\nRules.\n", "sbx policy show\nList the rules.\n", "9.8.7"} {
		if !ok || !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	if _, ok := Write("sbx.2", "9.8.7", table); ok {
		t.Error("a page that does not exist was written")
	}
}
