package foreign

import (
	"strings"
	"testing"

	"sbx.example/sbx/broker/internal/policy"
)

// No other tool holds back what was read, so what is labelled is refused there, with all that a narrower rule allows.
func TestExportKeepsLabelsIn(t *testing.T) {
	vars := policy.Vars{Project: "/home/u/proj"}
	const text = "[[rule]]\npath = \"/a/**\"\ndecision = \"allow\"\nLABEL" +
		"[[rule]]\npath = \"/a/b/**\"\ndecision = \"allow\"\n"
	for label, want := range map[string]bool{"": true, "label = \"x\"\n": false} {
		e, store := inForceWith(t, vars, "", strings.Replace(text, "LABEL", label, 1))
		for _, format := range Exports()[1:] {
			out, missing, err := Export(format, e, store, nil)
			if err != nil {
				t.Fatal(err)
			}
			im, err := Import(format, []byte(out), vars)
			if err != nil {
				t.Fatal(err)
			}
			after, back := inForceWith(t, vars, im.ConfigTOML(), im.PolicyTOML())
			for _, p := range []string{"/a/x", "/a/b/x"} {
				q := policy.Query{Kind: policy.KindPath, Path: p, Access: policy.Read}
				if got := opens(after, back, q); got != want || !want && len(missing) < 2 {
					t.Errorf("%s, %q: %s is allowed: %t, said %v\n%s", format, label, p, got, missing, out)
				}
			}
		}
	}
}
