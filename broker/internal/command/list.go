package command

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sbx/broker/internal/control"
	"sbx/broker/internal/host"
	"sbx/broker/internal/option"
	"sbx/broker/internal/session"
	"sbx/broker/plan"
)

// listed is one session in `sbx ls --json`.
type listed struct {
	SID     string    `json:"sid"`
	Started time.Time `json:"started"`
	Alive   bool      `json:"alive"`
	Frozen  bool      `json:"frozen"`
	How     string    `json:"frozen_by"` // cgroup or signal
	Kept    bool      `json:"kept"`
	Dir     string    `json:"dir"`
}

// List is sbx list.
func (t *Term) List() Row {
	return Row{
		Command: option.Command{Name: "ls", Args: "[--all] [--json]", Help: "list sessions",
			Text: "Lists running sessions; --all adds the records of ended ones."},
		Begin: func([]string) ([]option.Option, func([]string) int) {
			all, js := false, false
			return []option.Option{
				{Name: "all", Short: "a", Value: option.Switch(&all), Help: "the records of ended sessions too"},
				JSON(&js),
			}, func(words []string) int { return t.list(words, all, js) }
		},
	}
}

// jsonOption is the option of most commands that show something.
func JSON(p *bool) option.Option {
	return option.Option{Name: "json", Value: option.Switch(p), Help: "machine-readable output"}
}

// list shows the running sessions, and with all also the records of ended ones.
func (t *Term) list(words []string, all, js bool) int {
	if len(words) > 0 {
		return t.Fail(Unexpected("ls", words[0]))
	}
	root, err := session.Root(host.Lookup(t.Env, "XDG_STATE_HOME"), host.Read(t.Env).Home)
	if err != nil {
		return t.Fail(err)
	}
	list, stale := []listed{}, false
	entries, err := os.ReadDir(root)
	if err != nil && !os.IsNotExist(err) {
		return t.Fail(fmt.Errorf("listing sessions: %w", err))
	}
	for _, e := range entries {
		dir := filepath.Join(root, e.Name())
		info, err := e.Info()
		if plan.ValidSession(e.Name()) != nil || err != nil || !e.IsDir() {
			continue
		}
		l := listed{SID: e.Name(), Started: info.ModTime(), Alive: session.Running(dir), Kept: host.Exists(filepath.Join(dir,
			"kept")), Dir: dir}
		if plan, err := os.Lstat(filepath.Join(dir, "plan.json")); err == nil {
			l.Started = plan.ModTime()
		}
		if how, err := os.ReadFile(filepath.Join(dir, "frozen")); err == nil && l.Alive {
			l.Frozen, l.How = true, strings.TrimSuffix(string(how), "\n")
		}
		if !l.Alive && !l.Kept && host.Exists(filepath.Join(dir, "overlay")) {
			stale = true
		}
		if l.Alive || all {
			list = append(list, l)
		}
	}
	t.Clean(root, stale)
	if js {
		t.Print(Encode(struct {
			Sessions []listed `json:"sessions"`
		}{list}))
		return 0
	}
	t.Print(listText(list))
	return 0
}

func listText(list []listed) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-20s %-20s %s\n", "SID", "STARTED", "STATE")
	for _, l := range list {
		state := "ended"
		if l.Alive {
			state = "running"
			if l.Frozen {
				state = "frozen (SIGSTOP)"
				if l.How == "cgroup" {
					state = "frozen (control group)"
				}
			}
		} else if l.Kept {
			state = "ended, overlays kept"
		}
		fmt.Fprintf(&b, "%-20s %-20s %s\n", l.SID, l.Started.Format("2006-01-02 15:04:05"), state)
	}
	return b.String()
}

// Clean removes what sessions have left whose brokers were killed. Another session may have removed all but the
// socket before (see run).
func (t *Term) Clean(root string, records bool) {
	control.Clean(root, control.FindRoot(host.Lookup(t.Env, "XDG_RUNTIME_DIR"), host.Lookup(t.Env, "XDG_STATE_HOME"),
		host.Read(t.Env).Home), records)
}

// sessionAlive says whether a broker holds the session's lock.
func (t *Term) sessionAlive(sid string) bool {
	root, err := session.Root(host.Lookup(t.Env, "XDG_STATE_HOME"), host.Read(t.Env).Home)
	return err == nil && host.Exists(filepath.Join(root, sid)) && session.Alive(filepath.Join(root, sid))
}
