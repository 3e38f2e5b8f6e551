package mark

import (
	"encoding/base64"
	"encoding/hex"
	"strings"
	"testing"
)

func TestFind(t *testing.T) {
	const mark, another = "ABCDEFGH234567QZ", "ZYXWVUTSRQPONMLK"
	text := "[default]\naws_access_key_id = AKIA" + mark + "\n"
	marks := []Mark{{"/h/.netrc", another}, {"/h/.aws/credentials", mark}}
	encoded := base64.StdEncoding.EncodeToString
	for name, in := range map[string]string{
		"plain":        text,
		"lower case":   strings.ToLower(text),
		"labels":       mark[:5] + "." + mark[5:11] + "-" + mark[11:] + ".evil.test",
		"hexadecimal":  hex.EncodeToString([]byte(text)),
		"lower in hex": hex.EncodeToString([]byte(strings.ToLower(text))),
		"base64":       encoded([]byte(mark)),
		"base64 at 1":  encoded([]byte("x" + mark + "y")),
		"base64 at 2":  encoded([]byte("xx" + mark + "yy")),
		"base64 of it": encoded([]byte(text)),
		"lower in it":  encoded([]byte(strings.ToLower(text))),
		"in lines":     lines(encoded([]byte(mark)), 7),
		"in JSON":      strings.ReplaceAll(lines(encoded([]byte(text)), 19), "\r\n", `\r\n`),
		"in lines of":  lines(encoded([]byte(text)), 19),
	} {
		if m := Find(marks, in); m == nil || m.Path != "/h/.aws/credentials" {
			t.Errorf("%s: %q has no mark", name, in)
		}
	}
	// Every letter that a mark can have, at each place in base64, is found.
	for _, c := range "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567" {
		same := strings.Repeat(string(c), Len)
		for skip := range 3 {
			for _, in := range []string{same, strings.ToLower(same)} {
				code := encoded([]byte(strings.Repeat("-", skip) + in + "-"))
				if Find([]Mark{{"/h/.netrc", same}}, lines(code, 5)) == nil {
					t.Errorf("%q in base64 at %d has no mark", in, skip)
				}
			}
		}
	}
	nested := strings.Repeat(`\`, 1<<18) + strings.Repeat("n", 1<<18) // taken out one by one it would never end
	for _, in := range []string{"", mark[:Len-1], mark[1:], strings.Repeat("A", 4096), nested} {
		if m := Find(marks, in); m != nil {
			t.Errorf("%.99q has the mark of %s", in, m.Path)
		}
	}
}

// lines breaks text after every n letters, as base64 does after 76.
func lines(text string, n int) (out string) {
	for ; len(text) > n; text = text[n:] {
		out += text[:n] + "\r\n"
	}
	return out + text
}
