package control

import (
	"reflect"
	"testing"
)

// TestMembersHaveNamesOfTheirOwn: of two members with one name encoding/json reads neither.
func TestMembersHaveNamesOfTheirOwn(t *testing.T) {
	seen := map[string]string{}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Message]()) {
		name := f.Tag.Get("json")
		if f.Anonymous {
			continue
		}
		if before, ok := seen[name]; ok || name == "" {
			t.Errorf("%s is the name of %s and of %s", name, before, f.Name)
		}
		seen[name] = f.Name
	}
	if seen["cpu_milli"] == "" || seen["model_cents"] == "" { // of a member's member, and of that one's
		t.Error("not all members were seen")
	}
}
