package prompt

import "testing"

func TestPlainKeys(t *testing.T) {
	for in, want := range map[string]string{
		"o":                  "o",
		"\x1b":               "\x1b",
		"\x1b[27u":           "\x1b",
		"\x1b[27;1:1u":       "\x1b",
		"\x1b[99;5u":         "\x03",
		"\x1b[100;5u":        "\x04",
		"\x1b[27;5;99~":      "\x03",
		"\x1b[111u":          "o",
		"\x1b[111;1;111u":    "o",
		"\x1b[111;65u":       "o", // Caps Lock
		"\x1b[111;1:3u":      "",  // let go
		"\x1b[111;1:2u":      "",  // repeats
		"\x1b[57441;2u":      "",  // Shift
		"\x1b[47:63;2u":      "?",
		"\x1b[27;2;63~":      "?",
		"\x1b[111;2u":        "O",
		"\x1b[13u":           "\r",
		"\x1b[100u\x1b[115u": "ds",
		// What is no key for a question stays, and is refused as pasted.
		"\x1b[A":                        "\x1b[A",
		"\x1b[1;5A":                     "\x1b[1;5A",
		"\x1b[?1u":                      "\x1b[?1u",
		"\x1b[u":                        "\x1b[u",
		"\x1b[111;3u":                   "\x1b[111;3u", // Alt
		"\x1b[111;9u":                   "\x1b[111;9u",
		"\x1b[49;5u":                    "\x1b[49;5u",
		"\x1b[228u":                     "\x1b[228u",
		"\x1b[24;1R":                    "\x1b[24;1R",
		"\x1b[28;5;99~":                 "\x1b[28;5;99~",
		"\x1b[99999999999999999999u":    "\x1b[99999999999999999999u",
		"\x1b[111;99999999999999999999": "\x1b[111;99999999999999999999",
		"\x1b[111":                      "\x1b[111",
		"":                              "",
	} {
		if got := string(plainKeys([]byte(in))); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// Nothing but a whole sequence becomes a key, and nothing becomes more than it was.
func FuzzPlainKeys(f *testing.F) {
	f.Add([]byte("\x1b[111;1:1;111u"))
	f.Add([]byte("\x1b[27;5;99~"))
	f.Fuzz(func(t *testing.T, b []byte) {
		out := plainKeys(b)
		if len(out) > len(b) {
			t.Fatalf("%q: %q", b, out)
		}
		key, n := keySequence(b)
		if n > len(b) || len(key) > 1 || n != 0 && (b[0] != 0x1b || b[n-1] != 'u' && b[n-1] != '~') {
			t.Fatalf("%q: %q from %d bytes", b, key, n)
		}
	})
}
