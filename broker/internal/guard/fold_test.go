package guard

import "testing"

func TestFold(t *testing.T) {
	for in, out := range map[string]string{"abc": "abc", "ABC": "abc", "ſh": "sh", "\u212a": "k", "ß": "ss",
		"ﬁ": "fi", ".g\u200cit": ".git", "É": "é",
		"git~1": ".git", ".git. .": ".git", ".git:x": ".git", `.git\x`: ".git", "x:y": "x:y", "...": "...", ".env.": ".env",
		"a~b": "a~b"} {
		if got := Fold(in); got != out {
			t.Errorf("%q folds to %q, want %q", in, got, out)
		}
	}
}
