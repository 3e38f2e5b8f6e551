package request

import (
	"errors"
	"strings"
	"testing"

	"sbx.example/sbx/broker/internal/option"
)

// TestMisspelt: what is suggested for an option that does not exist is what a person would have meant, and opens
// nothing that nobody has spoken of. Where several things could be meant, there is an explanation, or the help.
func TestMisspelt(t *testing.T) {
	const help = "see sbx run --help"
	for typed, want := range map[string]string{
		// slips of the fingers
		"--no-netwrk": "did you mean --no-network?", "--nonetwork": "did you mean --no-network?",
		"--alow-host": "did you mean --allow-host?", "--allowhost": "did you mean --allow-host?",
		"--allow-netwrok": "did you mean --allow-network?", "--profle": "did you mean --profile?",
		"--epehmeral": "did you mean --ephemeral?", "--wr": "did you mean --rw?", "--ahgent": "did you mean --agent?",
		"--dryrun": "did you mean --dry-run?", "--timout": "did you mean --timeout?", "--chaches": "did you mean --caches?",
		// the beginning of a name
		"--mem": "did you mean --memory?", "--ssh": "did you mean --ssh-agent?", "--nest": "did you mean --nested?",
		// the words of others, mistyped too
		"--netwrk": "--allow-network lets it reach", "--netowrk": "--allow-network lets it reach",
		"--readonly": "--ephemeral keeps", "--mont": "--ro PATH and --rw PATH", "--prot": "--publish HOST:PORT",
		"--volum": "--ro PATH and --rw PATH", "--backgroud": "--detach", "--dynmic": "--mode dynamic",
		"--previleged": "nothing inside has a privilege",
		// what would open something else
		"--root": "CMD runs as you", "--docker": "--containers lets podman", "--debug": "--verbose prints",
		"--allow-all": "one thing at a time", "--unsafe": "one thing at a time", "--deny": "--hide PATH",
		"--allow-port": help, "--allow-gpu": help, "--no-hosts": help, "--no-publish": help,
		"--buss": help, "--rx": "did you mean --ro?",
		"--allow-write": help, "--gui": help, "--set": "--env K=V", "--pro": help, "--x": help, "--zzzz": help,
	} {
		c := Row()
		c.Rows = (&Request{}).Options()
		_, err := c.Parse([]string{typed, "x"})
		m := new(option.Mistake)
		if !errors.As(err, &m) || !strings.Contains(m.Hint, want) {
			t.Errorf("%s: %v: %q, want %q", typed, err, m.Hint, want)
		}
	}
}
