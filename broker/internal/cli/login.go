//go:build linux

package cli

import (
	"os"
	"slices"
	"strings"

	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/launch"
	"sbx.example/sbx/broker/internal/quoting"
	"sbx.example/sbx/broker/internal/request"
)

// An agent's login is one question, at the first run with its profile on a terminal; the answer is a setting. Where
// nobody can be asked, a run says what the agent does without.

// askLogin asks it, where nobody has answered it yet, and says whether the settings are others now.
func (t *term) askLogin(r *request.Request, s request.Settings) bool {
	files := make([]string, len(s.Agent.Asks))
	for i, f := range s.Agent.Asks {
		files[i] = quoting.Quote(s.Vars.Short(f))
	}
	list := strings.Join(files, " ")
	asks := s.Sandbox.Prompt == "auto" || s.Sandbox.Prompt == "tty"
	if !asks || r.JSON || !launch.HasTerminal([3]*os.File{t.Std[0], nil, t.Std[2]}) {
		if !r.Quiet {
			t.warn("agent " + s.Agent.Name + ": its login is hidden: " + list)
			t.note("hint: sbx config set agents.login " + s.Agent.Name + " shows it to " +
				strings.Join(s.Agent.Programs, ", ") + " alone\n")
		}
		return false
	}
	t.note("sbx: show " + s.Agent.Name + " its own login? " + list + "\nsbx: only " +
		strings.Join(s.Agent.Programs, ", ") + " will have it, in every run with this profile  [y]es [n]o  ")
	key, names := "", []string(nil)
	switch strings.ToLower(t.readLine()) {
	case "y", "yes":
		key, names = "agents.login", s.Agents.Login
	case "n", "no":
		key, names = "agents.hide_login", s.Agents.HideLogin
	default:
		t.note("sbx: not answered: it is hidden this time\n")
		return false
	}
	file, err := request.Remember(t.Env, host.Read(t.Env), key, append(slices.Clone(names), s.Agent.Name)...)
	if err != nil {
		t.warn("remembering the answer: " + err.Error())
		t.note("hint: sbx config set " + key + " " + s.Agent.Name + "\n")
		return false
	}
	t.note("sbx: remembered: " + key + " has " + s.Agent.Name + " in " + quoting.Quote(file) + "\n")
	return true
}
