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
	} {
		if m := Find(marks, in); m == nil || m.Path != "/h/.aws/credentials" {
			t.Errorf("%s: %q has no mark", name, in)
		}
	}
	for _, in := range []string{"", mark[:Len-1], mark[1:], strings.Repeat("A", 4096)} {
		if m := Find(marks, in); m != nil {
			t.Errorf("%q has the mark of %s", in, m.Path)
		}
	}
}
