package command

import "testing"

// TestOutputOfPrograms: colours stay, and nothing that a terminal answers or keeps. What is not whole waits
// for more.
func TestOutputOfPrograms(t *testing.T) {
	for in, want := range map[string][2]string{
		"plain\ttext\r\n":                {"plain\ttext\r\n", ""},
		"\x1b[1;31mred\x1b[0m":           {"\x1b[1;31mred\x1b[0m", ""},
		"\x1b[38:2:1:2:3mx":              {"\x1b[38:2:1:2:3mx", ""},
		"a\x1b[6nb":                      {"a?[6nb", ""},
		"\x1b]52;c;ZXZpbA==\a":           {"?]52;c;ZXZpbA==?", ""},
		"\x1b[>4;2mx":                    {"?[>4;2mx", ""},
		"\x1bc\x1b[2J\x7f\b":             {"?c?[2J??", ""},
		"\u009b6n\x9b6n":                 {"?6n\ufffd6n", ""},
		"\u202eevil":                     {"?evil", ""},
		"end\x1b":                        {"end", "\x1b"},
		"end\x1b[1;3":                    {"end", "\x1b[1;3"},
		"\u00fc\xc3":                     {"\u00fc", "\xc3"},
		"\x1b[" + string(zeros(99)) + "": {"?[" + string(zeros(99)), ""},
	} {
		if text, rest := shown([]byte(in)); text != want[0] || string(rest) != want[1] {
			t.Errorf("%q: %q and %q", in, text, rest)
		}
	}
}

func zeros(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = '0'
	}
	return b
}
