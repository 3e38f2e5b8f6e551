package selftest

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"sbx/broker/plan"
)

func cmdPlanFile(ts *testscript.TestScript, args []string) {
	_, err := plan.Decode([]byte(ts.ReadFile(args[0])))
	ts.Check(err)
}

func cmdJSONLines(ts *testscript.TestScript, args []string) {
	text := strings.TrimSuffix(ts.ReadFile(args[0]), "\n")
	if text == "" {
		ts.Fatalf("%s is empty", args[0])
	}
	for line := range strings.SplitSeq(text, "\n") {
		var v map[string]any
		if err := json.Unmarshal([]byte(line), &v); err != nil || len(v) == 0 {
			ts.Fatalf("%s: %q: %v", args[0], line, err)
		}
	}
}

func cmdJSONObject(ts *testscript.TestScript, args []string) {
	var v map[string]json.RawMessage
	if err := json.Unmarshal([]byte(ts.ReadFile(args[0])), &v); err != nil {
		ts.Fatalf("%s: %v", args[0], err)
	}
	want := slices.Sorted(slices.Values(args[1:]))
	if got := slices.Sorted(maps.Keys(v)); !slices.Equal(got, want) {
		ts.Fatalf("%s has %q, want %q", args[0], got, want)
	}
}
