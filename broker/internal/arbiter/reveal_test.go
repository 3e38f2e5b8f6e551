package arbiter

import (
	"context"
	"errors"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"sbx.example/sbx/broker/internal/decide"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/prompt"
)

const netrc = "/h/.netrc"

func asking() decide.Env {
	return decide.Env{Reveals: policy.Reveals{Asks: map[string]bool{netrc: true}}}
}

// Whatever keeps a secret from being shown, the program is told that there is none.
func TestSecretThatIsNotShownDoesNotExist(t *testing.T) {
	silent := func(prompt.Question) (prompt.Answer, bool) { return prompt.Answer{}, false }
	for name, c := range map[string]struct {
		opt Options
		say func(prompt.Question) (prompt.Answer, bool)
	}{
		"a no":                  {Options{}, func(prompt.Question) (prompt.Answer, bool) { return prompt.Answer{}, true }},
		"silence":               {Options{Prompt: prompt.Options{Timeout: 20 * time.Millisecond}}, silent},
		"nobody there":          {Options{Alone: func() bool { return true }, Grace: 20 * time.Millisecond}, silent},
		"too many questions":    {Options{Prompt: prompt.Options{Mode: prompt.DenyAll}}, silent},
		"a yes without a scope": {Options{Prompt: prompt.Options{Mode: prompt.AllowAll}}, silent},
	} {
		t.Run(name, func(t *testing.T) {
			c.opt.Env = asking()
			a, _ := start(t, c.opt)
			answerer(a, c.say)
			if v := a.Ask(t.Context(), read(netrc)); v.Decision != decide.Deny || v.Errno != int(syscall.ENOENT) {
				t.Errorf("%v, errno %d: %s", v.Decision, v.Errno, v.Reason)
			}
		})
	}
	// control: what is no secret exists, and is refused
	a, _ := start(t, Options{Prompt: prompt.Options{Timeout: 20 * time.Millisecond}})
	if v := a.Ask(t.Context(), read("/h/notes")); v.Errno != int(syscall.EACCES) {
		t.Errorf("errno %d", v.Errno)
	}
}

// What shows a secret to a session settles the question that waits, and is about that secret alone.
func TestRevealFromOutside(t *testing.T) {
	a, log := start(t, Options{Env: asking()})
	yes := decide.Answer{Allow: true, Scope: decide.Revealed, Life: decide.Session, By: prompt.BySocket}
	if err := a.Reveal("/h/.ssh/id", yes); err == nil {
		t.Error("a secret that nobody wants to be asked about is shown")
	}
	asked := answerer(a, func(prompt.Question) (prompt.Answer, bool) { return prompt.Answer{}, false })
	done := make(chan decide.Verdict, 1)
	go func() { done <- a.Ask(context.Background(), read(netrc)) }()
	for asked.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	if err := a.Reveal(netrc, yes); err != nil {
		t.Fatal(err)
	}
	if v := <-done; v.Decision != decide.Allow {
		t.Fatal(v.Reason)
	}
	if v := a.Ask(t.Context(), decide.Ask{Op: "write", Kind: policy.KindPath, Path: netrc}); v.Decision != decide.Deny {
		t.Error("it may be written")
	}
	if log.kinds() != "grant allow deny" {
		t.Errorf("recorded: %s", log.kinds())
	}
}

// A rule of files that cannot be relied upon shows nothing.
func TestRevealByFilesThatCannotBeRead(t *testing.T) {
	var broken atomic.Bool
	env := decide.Env{Policy: rules(t, policy.Rule{Kind: policy.KindPath, Pattern: netrc, Decision: policy.Reveal}),
		Reveals: policy.Reveals{Rules: map[string]bool{netrc: true}}}
	a, _ := start(t, Options{Env: env, Fresh: func() (decide.Env, bool, error) {
		if broken.Load() {
			return decide.Env{}, false, errors.New("line 3: what is this")
		}
		return decide.Env{}, false, nil
	}})
	if v := a.Ask(t.Context(), read(netrc)); v.Decision != decide.Allow {
		t.Fatal(v.Reason)
	}
	broken.Store(true)
	if v := a.Ask(t.Context(), read(netrc)); v.Decision != decide.Deny || v.Errno != int(syscall.ENOENT) {
		t.Errorf("%v, errno %d: %s", v.Decision, v.Errno, v.Reason)
	}
}
