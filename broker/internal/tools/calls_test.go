//go:build linux

package tools

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sbx.example/sbx/audit"
	"sbx.example/sbx/broker/internal/decide"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/program"
	"sbx.example/sbx/broker/plan"
)

// TestUnrecordedCallIsRefused: a call that cannot be written down does not run, whoever has allowed it.
func TestUnrecordedCallIsRefused(t *testing.T) {
	for what, broken := range map[string]bool{"a whole record": false, "a record that another wrote to": true} {
		dir := t.TempDir()
		log, err := audit.Create(filepath.Join(dir, "logs"), "s", audit.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer log.Close()
		touch, err := Find(policy.Tool{Server: policy.Server{Name: "t", Command: []string{"touch"}}, On: policy.OnHost,
			Timeout: time.Minute, Output: "1M"}, program.Source{})
		if err != nil {
			t.Fatal(err)
		}
		c := &Calls{Context: t.Context(), Cancel: func() {}, Tools: map[string]Tool{"t": touch}, Project: dir, Log: log,
			Ask: func(context.Context, decide.Ask) bool { return true }, Refused: func(decide.Ask, string) {}}
		if broken {
			f, err := os.OpenFile(log.Path(), os.O_WRONLY|os.O_APPEND, 0)
			if err != nil {
				t.Fatal(err)
			}
			_, err = f.WriteString("x")
			if f.Close(); err != nil {
				t.Fatal(err)
			}
		}
		conn := serving(t, c.carryOut)
		call, err := json.Marshal(said{Tool: "t", Args: []plan.Bytes{"ran"}, Cwd: plan.Bytes(dir)})
		if err != nil {
			t.Fatal(err)
		}
		send(t, conn, frameCall, string(call))
		end := receive(t, conn, frameEnd)
		_, err = os.Stat(filepath.Join(dir, "ran"))
		if ran := err == nil; ran == broken || broken && !strings.Contains(end, "the call cannot be recorded: ") {
			t.Errorf("%s: it ran: %v; the end is %s", what, ran, end)
		}
	}
}
