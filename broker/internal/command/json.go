package command

import (
	"bytes"
	"encoding/json"

	"sbx.example/sbx/broker/internal/hint"
	"sbx.example/sbx/broker/internal/option"
)

// With --json a command says all that it has to say in one object, errors too; docs/schema.json describes each.

// Encode is how a value is shown with --json.
func Encode(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	_ = e.Encode(v)
	return b.String()
}

// JSON is the option of most commands that show something.
func JSON(p *bool) option.Option {
	return option.Option{Name: "json", Value: option.Switch(p), Help: "machine-readable output"}
}

// Failure is an error in the answer of a command.
type Failure struct {
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
	Status  int    `json:"status"` // with which sbx ends because of it
}

func failureOf(err error) *Failure {
	return &Failure{err.Error(), hint.Of(err), hint.Status(err)}
}

// fails answers with an error: on standard output, or in one line of standard error where that is a program's.
func (t *Term) fails(err error) {
	f := struct {
		Error *Failure `json:"error"`
	}{failureOf(err)}
	if !t.aside {
		t.Print(Encode(f))
		return
	}
	t.NoteJSON(f)
}

// NoteJSON writes a value to where messages go, in one line however long that is.
func (t *Term) NoteJSON(v any) {
	var line bytes.Buffer
	_ = json.Compact(&line, []byte(Encode(v)))
	t.say(append(line.Bytes(), '\n'))
}

// AnswerJSON has errors said as objects, if that is wanted; aside says that standard output is a program's.
func (t *Term) AnswerJSON(wanted, aside bool) { t.json, t.aside = wanted, aside }

// WantsJSON says whether the answer is to be an object.
func (t *Term) WantsJSON() bool { return t.json }

// wantsJSON says whether the line asks for an object: of one with a mistake in it, if that can be told.
func (c *Row) wantsJSON(rows []option.Option, args []string, mistaken bool) bool {
	for _, o := range rows {
		if o.Name == "json" && o.Setting != nil && o.Setting() != nil {
			return true
		}
	}
	for _, a := range args {
		if a == "--" || !mistaken || c.Leading {
			return false
		}
		if a == "--json" {
			return true
		}
	}
	return false
}

// Each does something to each of several; one that fails does not keep the others from it. The answer is a list, whose
// rows have the name as member.
func (t *Term) Each(list, member string, names []string, do func(string) error) int {
	status, rows := 0, []map[string]any{}
	for _, name := range names {
		row := map[string]any{member: name}
		if err := do(name); err != nil {
			row["error"], status = failureOf(err), hint.Status(err)
			if !t.json {
				t.Fail(err)
			}
		}
		rows = append(rows, row)
	}
	if t.json {
		t.Print(Encode(map[string]any{list: rows}))
	}
	return status
}
