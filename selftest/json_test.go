//go:build linux

package selftest

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"sbx.example/sbx/broker/plan"
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

// schemaOf is what docs/schema.json says of the answer called name. Here a member that it does not have is a mistake,
// so that it is complete; programs of others ignore such members.
func schemaOf(name string) (*jsonschema.Schema, error) {
	c, err := schemas()
	if err != nil {
		return nil, err
	}
	compiling.Lock()
	defer compiling.Unlock()
	return c.Compile("schema.json#/$defs/" + strings.ReplaceAll(name, " ", "%20"))
}

// compiling is held by who compiles a part of schemas, which then has it for all.
var compiling sync.Mutex

// schemas is read once: it is checked against the schema of schemas when it is first compiled.
var schemas = sync.OnceValues(func() (*jsonschema.Compiler, error) {
	f, err := os.Open("../docs/schema.json")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	doc, err := jsonschema.UnmarshalJSON(f)
	if err != nil {
		return nil, err
	}
	closeObjects(doc)
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	return c, c.AddResource("schema.json", doc)
})

// closeObjects adds to each description of an object that it has no other members.
func closeObjects(v any) {
	switch v := v.(type) {
	case map[string]any:
		if _, known := v["additionalProperties"]; v["type"] == "object" && v["properties"] != nil && !known {
			v["additionalProperties"] = false
		}
		for _, x := range v {
			closeObjects(x)
		}
	case []any:
		for _, x := range v {
			closeObjects(x)
		}
	}
}

func cmdSchema(ts *testscript.TestScript, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: schema NAME FILE")
	}
	s, err := schemaOf(args[0])
	ts.Check(err)
	d := json.NewDecoder(strings.NewReader(ts.ReadFile(args[1])))
	d.UseNumber()
	n := 0
	for ; d.More(); n++ {
		var v any
		if err := d.Decode(&v); err != nil {
			ts.Fatalf("%s: %v", args[1], err)
		}
		if err := s.Validate(v); err != nil {
			ts.Fatalf("%s is not what docs/schema.json calls %s: %v", args[1], args[0], err)
		}
	}
	if n == 0 {
		ts.Fatalf("%s is empty", args[1])
	}
}

// noData are the commands whose answer is no data: a program's terminal, a text for a shell or for man,
// another command's answer.
var noData = [...]string{"attach", "completion", "env", "man"}

// TestEveryCommandAnswersInJSON: each command takes --json, the schema says what it answers then, and json.txtar
// compares the two.
func TestEveryCommandAnswersInJSON(t *testing.T) {
	needSandbox(t) // which builds it
	cmd := exec.Command(shop.sbx, "help", "--json")
	cmd.SysProcAttr, cmd.Env = shop.attr(), shop.env(shop.dir, shop.dir)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	type command struct {
		Name    string
		Options []struct{ Name string }
	}
	var table struct{ Commands []command }
	if err := json.Unmarshal(out, &table); err != nil || len(table.Commands) < 30 {
		t.Fatalf("%d commands, %v", len(table.Commands), err)
	}
	scripts, err := filepath.Glob("testdata/json*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	compared := ""
	for _, s := range scripts {
		b, err := os.ReadFile(s)
		if err != nil {
			t.Fatal(err)
		}
		compared += string(b)
	}
	for _, c := range table.Commands {
		json := false
		for _, o := range c.Options {
			json = json || o.Name == "json"
		}
		verbs := slices.ContainsFunc(table.Commands, func(o command) bool { return strings.HasPrefix(o.Name, c.Name+" ") })
		switch {
		case !json && !verbs && !slices.Contains(noData[:], c.Name):
			t.Errorf("sbx %s has no --json", c.Name)
		case !json:
		case !strings.Contains(compared, "schema '"+c.Name+"' ") && !strings.Contains(compared, "schema "+c.Name+" "):
			t.Errorf("json.txtar does not compare the answer of sbx %s with docs/schema.json", c.Name)
		default:
			if _, err := schemaOf(c.Name); err != nil {
				t.Errorf("docs/schema.json: %v", err)
			}
		}
	}
}
