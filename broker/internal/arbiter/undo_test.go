package arbiter

import (
	"slices"
	"strings"
	"testing"
	"time"

	"sbx.example/sbx/audit"
	"sbx.example/sbx/broker/internal/decide"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/prompt"
)

// TestUndoIsTheWholeAnswer: what an answer granted, refused, stored and remembered is gone when it is taken back, all
// of it and nothing else, and each part of it is on record.
func TestUndoIsTheWholeAnswer(t *testing.T) {
	for _, c := range []struct {
		answer prompt.Answer
		record []string
	}{
		{prompt.Answer{Allow: true, Life: prompt.ForSession}, []string{"read /h/n/a file"}},
		{prompt.Answer{Allow: true, Scope: prompt.Dir}, []string{"read /h/n dir"}},
		{prompt.Answer{Allow: true, Scope: prompt.Tree, Life: prompt.Forever}, []string{"read /h/n tree"}},
		{prompt.Answer{Life: prompt.Forever}, []string{"read /h/n/a file"}},
		{prompt.Answer{}, []string{"/h/n/a once"}},
		{prompt.Answer{Scope: prompt.Program}, []string{"program"}},
		{prompt.Answer{Scope: prompt.Everything}, []string{"everything"}},
	} {
		var stored, unstored []string
		undone := 0
		a, l := start(t, Options{
			Store: func(_ string, rules []policy.Rule) error {
				for _, r := range rules {
					stored = append(stored, r.String())
				}
				return nil
			},
			Unstore: func(_ string, rules []policy.Rule) error {
				for _, r := range rules {
					unstored = append(unstored, r.String())
				}
				return nil
			},
			Undone: func(decide.Consent) error { undone++; return nil }})
		a.grants.Add(decide.Grant{Kind: policy.KindPath, Name: "/h/kept", Access: policy.Read, Allow: true,
			Scope: decide.File, Life: decide.Session})
		probes := []decide.Ask{read("/h/n/a"), read("/h/n/b"), read("/h/n/d/e"), read("/h/kept"), read("/h/m")}
		decisions := func() (out []decide.Decision) {
			for _, p := range probes {
				out = append(out, a.Current(p).Decision)
			}
			return out
		}
		before := decisions()
		done := make(chan decide.Verdict, 1)
		walked := read("/h/n/a")
		walked.Walk = "/h"
		go func() { done <- a.Ask(t.Context(), walked) }()
		c.answer.By = prompt.ByTTY
		if err := a.Queue().Answer(waiting(t, a).ID, c.answer); err != nil {
			t.Fatal(err)
		}
		<-done
		if lasts := c.answer != (prompt.Answer{By: prompt.ByTTY}); lasts == slices.Equal(decisions(), before) {
			t.Errorf("%+v: lasts %t: %v", c.answer, lasts, decisions())
		}
		if _, err := a.Queue().Undo(); err != nil {
			t.Errorf("%+v: %v", c.answer, err)
		}
		if got := decisions(); !slices.Equal(got, before) {
			t.Errorf("%+v: %v, before %v", c.answer, got, before)
		}
		if !slices.Equal(stored, unstored) || undone != 1 {
			t.Errorf("%+v: stored %q, taken out %q; %d", c.answer, stored, unstored, undone)
		}
		if got := l.of(audit.KindRevoke); !slices.Equal(got, c.record) {
			t.Errorf("%+v: recorded %q, want %q", c.answer, got, c.record)
		}
		if c.answer.Scope == "" && !c.answer.Allow { // the walk that it refused is asked about again
			go func() { done <- a.Ask(t.Context(), walked) }()
			if err := a.Queue().Answer(waiting(t, a).ID, prompt.Answer{By: prompt.BySocket}); err != nil {
				t.Error(err)
			}
			<-done
		}
		if _, err := a.Queue().Undo(); err == nil {
			t.Errorf("%+v: taken back twice", c.answer)
		}
	}
}

// TestNoToTheRestIsOneValue: a no to all that a program asks settles its other questions, is on record with the program
// and no object, is what the summary is told, and ends with --revoke.
func TestNoToTheRestIsOneValue(t *testing.T) {
	a, l := start(t, Options{})
	var told []Event
	a.Observe(func(ev Event) { told = append(told, ev) })
	first := make(chan decide.Verdict, 1)
	go func() { first <- a.Ask(t.Context(), read("/h/a")) }()
	q := waiting(t, a)
	if err := a.Queue().Answer(q.ID, prompt.Answer{Scope: prompt.Program, By: prompt.ByTTY}); err != nil {
		t.Fatal(err)
	}
	<-first
	v := a.Ask(t.Context(), read("/srv/x"))
	if v.Decision != decide.Deny || v.Reason != "refused with whatever else this program would ask about" {
		t.Errorf("%+v", v)
	}
	if len(told) != 2 || told[1].Verdict.Reason != v.Reason {
		t.Errorf("%+v", told)
	}
	for _, e := range l.events {
		if e.Kind == audit.KindGrant && (e.Path != "" || e.Scope != "program" || e.Exe != read("/h/a").Exe ||
			e.Decision != "deny") {
			t.Errorf("%+v", e)
		}
	}
	if got := strings.Join(l.of(audit.KindGrant), ","); got != "program" {
		t.Errorf("recorded %q", got)
	}
	if n := a.Revoke(policy.KindPath, read("/h/a").Exe); n != 1 {
		t.Errorf("%d answers taken back", n)
	}
	go func() { first <- a.Ask(t.Context(), read("/srv/x")) }()
	if err := a.Queue().Answer(waiting(t, a).ID, prompt.Answer{By: prompt.BySocket}); err != nil {
		t.Error(err)
	}
	<-first
}

// waiting is the one question that waits, or will.
func waiting(t *testing.T, a *Arbiter) decide.Question {
	t.Helper()
	for {
		if p := a.Queue().Pending(); len(p) == 1 {
			return p[0]
		}
		time.Sleep(time.Millisecond)
		if t.Context().Err() != nil {
			t.Fatal("no question came")
		}
	}
}
