package cli

import (
	"os"
	"strings"

	"sbx.example/sbx/broker/internal/command"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/option"
)

// envCommand is sbx env: what sbx integrate writes begins with it. An agent may have read a project's .env before it
// starts sbx, so the caller's environment is the project's as well.
func (t *term) envCommand() command.Row {
	return command.Row{
		Command: option.Command{Name: "env", Args: "[NAME=VALUE...] COMMAND [ARG...]",
			Help: "carry out a command of sbx's, which goes by these variables only",
			Text: "Variables such as HOME, XDG_CONFIG_HOME and SSH_AUTH_SOCK tell sbx where settings, records and\n" +
				"sockets are. COMMAND goes by those that are given here. What its caller has may come from a project's .env.\n" +
				"sbx integrate writes this before each call, with the values that the variables have then.",
			Leading: true},
		Aside: true,
		Begin: func([]string) ([]option.Option, func([]string) int) { return nil, t.env },
	}
}

func (t *term) env(words []string) int {
	n := 0
	for ; n < len(words); n++ {
		name, _, set := strings.Cut(words[n], "=")
		if !set {
			break
		}
		if !host.Kept(name) {
			return t.fail(option.Wrong(quote(name)+" is no variable that sbx goes by", "sbx run --env "+quote(words[n])+
				" sets one for the program"))
		}
	}
	if n == len(words) {
		return t.fail(option.Wrong("no command is given", "sbx env NAME=VALUE run -- CMD"))
	}
	t.adoptEnv(words[:n])
	return t.dispatch(words[n:])
}

// adoptEnv has all of this process go by own: also what asks for a variable without being given the environment.
func (t *term) adoptEnv(own []string) {
	t.own, t.settled = host.OverrideEnv(t.own, own), true
	os.Clearenv()
	for _, e := range t.own {
		name, value, _ := strings.Cut(e, "=")
		_ = os.Setenv(name, value)
	}
	t.Env = host.WithState(t.own)
}
