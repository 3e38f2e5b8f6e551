package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/control"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/launch"
	"sbx.example/sbx/broker/internal/option"
	"sbx.example/sbx/broker/internal/watch"
)

// Watch is sbx watch.
func (t *Term) Watch() Row {
	return Row{
		Command: option.Command{Name: "watch", Args: "[--once [--json]]", Help: "show sessions and answer their questions",
			Text: "Shows running sessions and the questions that wait; answers are single keys. --once prints and ends."},
		Begin: func([]string) ([]option.Option, func([]string) int) {
			once, js := false, false
			return onceOptions(&once, &js), func(words []string) int { return t.watchSessions(words, once, js) }
		},
	}
}

// onceOptions are those of the commands that draw a screen.
func onceOptions(once, js *bool) []option.Option {
	return []option.Option{{Name: "once", Value: option.Switch(once), Help: "print and end"}, JSON(js)}
}

// watchSessions shows all sessions of the user, and answers their questions.
func (t *Term) watchSessions(words []string, once, js bool) int {
	if len(words) > 0 {
		return t.Fail(Unexpected("watch", words[0]))
	}
	if js && !once {
		return t.Fail(option.Wrong("--json goes with --once",
			"the socket that docs/protocol.md describes tells events as they happen"))
	}
	root, err := t.ControlRoot()
	if err != nil {
		return t.Fail(err)
	}
	home := host.Read(t.Env).Home
	if once {
		return t.watchOnce(root, home, js)
	}
	if !launch.IsTerminal(t.Std[0]) || !launch.IsTerminal(t.Std[1]) {
		return t.Fail(option.Wrong("sbx watch needs a terminal", "sbx watch --once prints what waits and ends"))
	}
	return t.watch(root, watch.Options{Home: home})
}

func (t *Term) watchOnce(root, home string, js bool) (code int) {
	states, err := control.States(root)
	if err != nil {
		return t.Fail(err)
	}
	reached, missed := states[:0], []control.State{}
	for _, s := range states {
		if s.Err == nil {
			reached = append(reached, s)
		} else {
			missed = append(missed, s)
		}
	}
	states, code = reached, t.unshown(missed)
	if js {
		b, err := watch.JSON(states)
		if err != nil {
			return t.Fail(err)
		}
		t.Print(string(b))
		return code
	}
	for _, l := range watch.Table(states, home, time.Now()) {
		t.Print(l + "\n")
	}
	return code
}

// unshown says which sessions are there and could not be asked, and returns the status that tells of them.
func (t *Term) unshown(list []control.State) (code int) {
	for _, s := range list {
		t.Warn(fmt.Sprintf("session %s is not shown: %v", s.Info.SID, s.Err))
		code = 1
	}
	return code
}

// screen is the terminal that sbx watch draws on.
type screen struct{ f *os.File }

func (s screen) Write(b []byte) (int, error) { return s.f.Write(b) }

func (s screen) Size() (width, height int) {
	rows, cols := launch.Size(s.f)
	if rows == 0 || cols == 0 {
		return 80, 24
	}
	return int(cols), int(rows)
}

// watch runs the screen until the person quits.
func (t *Term) watch(root string, opt watch.Options) int {
	saved := launch.TerminalSettings(t.Std[0])
	if saved == nil {
		return t.Fail(errors.New("reading terminal settings: standard input is no terminal any more"))
	}
	if err := launch.MakeRaw(t.Std[0]); err != nil {
		return t.Fail(fmt.Errorf("setting the terminal: %w", err))
	}
	defer func() { _ = launch.SetTerminal(t.Std[0], saved) }()
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGTERM, unix.SIGHUP, unix.SIGINT)
	defer stop()
	sizes := make(chan os.Signal, 1)
	signal.Notify(sizes, unix.SIGWINCH)
	defer signal.Stop(sizes)
	resized := make(chan struct{}, 1)
	go func() {
		for range sizes {
			resized <- struct{}{}
		}
	}()
	keys := make(chan []byte)
	go func() {
		defer close(keys)
		buf := make([]byte, 256)
		for {
			n, err := t.Std[0].Read(buf)
			if n > 0 {
				keys <- append([]byte(nil), buf[:n]...)
			}
			if err != nil || n == 0 {
				return
			}
		}
	}()
	events := make(chan watch.Event, 64)
	go watch.Feed(ctx, root, events)
	opt.Color = t.Colours()
	m := watch.New(opt)
	in := watch.Input{Keys: keys, Resized: resized, Events: events}
	err := watch.Run(ctx, m, screen{t.Std[1]}, in, func(a watch.Action) error {
		return watch.Act(root, a)
	})
	if err != nil && !errors.Is(err, context.Canceled) {
		return t.Fail(err)
	}
	return 0
}
