package quoting

import (
	"os/exec"
	"strings"
	"testing"
)

// TestShellIsOneWord: whatever a name holds, it is one word to each shell and nothing in it is run. To one that does
// not know $'...' it is another word, and still one. As Script it is itself to all of them.
func TestShellIsOneWord(t *testing.T) {
	const run = "; echo RUN #"
	for _, name := range []string{"a'" + run, "\n'" + run, "\x1b'" + run, "\n\\'" + run, "\n\\\\'" + run,
		"\xff'$(echo RUN)'" + run,
		"\n`echo RUN`" + run, "\n\"" + run, "\u202e' || echo RUN '"} {
		for _, shell := range []string{"/bin/sh", "/bin/dash", "/bin/bash", "/bin/zsh", "/bin/ksh", "/bin/busybox"} {
			if _, err := exec.LookPath(shell); err != nil {
				continue
			}
			says := func(word string) (string, error) {
				args := []string{"-c", "printf '<%s>' " + word}
				if shell == "/bin/busybox" {
					args = append([]string{"sh"}, args...)
				}
				out, err := exec.Command(shell, args...).CombinedOutput()
				return string(out), err
			}
			if got, err := says(Script(name)); err != nil || got != "<"+name+">" {
				t.Errorf("%s: %q for a script as %s: %q, %v", shell, name, Script(name), got, err)
			}
			got, err := says(Shell(name))
			if err != nil || strings.Count(got, "<") != 1 || !strings.HasSuffix(got, ">") || strings.Contains(got, "RUN\n") {
				t.Errorf("%s: %q as %s: %q, %v", shell, name, Shell(name), got, err)
			}
			if shell == "/bin/bash" && got != "<"+name+">" {
				t.Errorf("%q as %s: %q", name, Shell(name), got)
			}
		}
	}
}
