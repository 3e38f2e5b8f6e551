package seatbelt

import (
	"strings"
	"testing"
)

// TestGrammar: what is not the language's, or would have sandbox-exec refuse a profile, is found, with the reason.
func TestGrammar(t *testing.T) {
	const head = "(version 1)\n(deny default)\n"
	for text, want := range map[string]string{
		head: "",
		head + "(allow file-read* (literal \"/a \\\"b\\\" \\\\c\")) ; words":                        "",
		head + "(deny file-write* file-read-data (subpath \"/a\") (regex #\"^/b(/.*)?$\"))":         "",
		head + "(allow network-outbound (remote ip \"localhost:*\"))":                               "",
		head + "(allow signal (target same-sandbox))":                                               "",
		head + "(allow file-read* (require-all (subpath \"/a\") (require-not (literal \"/a/b\"))))": "",
		"":                                                                          "begins with",
		"(version 1)":                                                               "begins with",
		"(version 2)\n(deny default)":                                               "is not (version 1)",
		"(version 1)\n(allow default)":                                              "is not (deny default)",
		head + "(allow file-reed*)":                                                 "file-reed* is no operation",
		head + "(permit file-read*)":                                                "neither allow nor deny",
		head + "(allow (subpath \"/\"))":                                            "has no operation",
		head + "(allow file-read* (subpath \"a\"))":                                 "not an absolute path",
		head + "(allow file-read* (subpath \"/a/\"))":                               "not an absolute path",
		head + "(allow file-read* (subpath #\"/a\"))":                               "takes one word of another kind",
		head + "(allow file-read* (subpath \"/a\" \"/b\"))":                         "takes one word of another kind",
		head + "(allow file-read* (prefix \"/a\"))":                                 "no filter that is known",
		head + "(allow file-read* \"/a\")":                                          "is no filter",
		head + "(allow file-read* (regex #\"/a\"))":                                 "not bound to the path's beginning",
		head + "(allow file-read* (regex #\"^/(?i)a\"))":                            "which the kernel's do not",
		head + "(allow file-read* (regex #\"^/a{2}\"))":                             "which the kernel's do not",
		head + "(allow file-read* (regex #\"^/(a\"))":                               "missing closing",
		head + "(allow file-read* (require-not (literal \"/a\") (literal \"/b\")))": "one filter is denied",
		head + "(allow network-outbound (remote ip \"10.0.0.1:*\"))":                "localhost and *",
		head + "(allow file-read* (literal \"/a\")":                                 "a list without an end",
		head + "(allow file-read* (literal \"/a))":                                  "a string without an end",
		head + "(allow file-read* (literal \"/\\x41\"))":                            "is no escape",
		head + "(allow file-read* (regex #\"^/a))":                                  "without an end",
		head + ")":                      "a word is expected",
		head + strings.Repeat("(", 100): "nested too deeply",
	} {
		_, err := Parse(text)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: got %v, want %q", strings.TrimPrefix(text, head), err, want)
		}
	}
}

// TestLastMatchDecides: the order of rules is what they mean.
func TestLastMatchDecides(t *testing.T) {
	for text, want := range map[string]bool{
		"(allow file-read* (subpath \"/a\")) (deny file-read* (subpath \"/a/b\"))":           false,
		"(deny file-read* (subpath \"/a/b\")) (allow file-read* (subpath \"/a\"))":           true,
		"(allow file-read* (subpath \"/a/b\"))":                                              true,
		"(allow file-read* (subpath \"/a/bc\"))":                                             false,
		"(allow file-read* (literal \"/a\"))":                                                false,
		"(allow file-read-metadata (subpath \"/\"))":                                         false,
		"(allow file-write* (subpath \"/\"))":                                                false,
		"(allow file-read* (regex #\"^/a/[^/]*$\"))":                                         false,
		"(allow file-read* (regex #\"^/a/.*$\"))":                                            true,
		"(allow file-read*)":                                                                 true,
		"(allow file-read* (require-any (literal \"/x\") (literal \"/a/b/c\")))":             true,
		"(allow file-read* (require-all (subpath \"/a\") (require-not (subpath \"/a/b\"))))": false,
		"(allow file-read* (require-all (subpath \"/a\") (extension \"x\")))":                false,
	} {
		p, err := Parse("(version 1)(deny default)" + text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if got := p.Allows("file-read-data", "/a/b/c"); got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
}

// FuzzParse: whatever the text, reading ends, and what was read means the same when it is written and read again.
func FuzzParse(f *testing.F) {
	f.Add(base + devices + last + network) // whole profiles take longer than a fuzzer has
	f.Add("(version 1)(deny default)(allow file-read* (literal \"/a\\\\\\\"b\"))")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := Parse(text)
		if err != nil {
			return
		}
		again := "(version 1)(deny default)"
		for _, r := range p.rules {
			word := "deny"
			if r.allow {
				word = "allow"
			}
			again += "(" + word + " " + strings.Join(r.operations, " ")
			for _, e := range r.filters {
				again += " " + e.String()
			}
			again += ")"
		}
		q, err := Parse(again)
		if err != nil {
			t.Fatalf("%v, written again as %q", err, again)
		}
		for _, x := range [][2]string{{"file-read-data", "/etc/passwd"}, {"file-write-create", "/a"},
			{"network-outbound", "ip localhost:1"}} {
			if p.Allows(x[0], x[1]) != q.Allows(x[0], x[1]) {
				t.Fatalf("%v means something else, written again as %q", x, again)
			}
		}
	})
}
