package plan

import "testing"

// TestMoved: a path in the tree is swapped, one beside it is not, and what would be two things is no plan.
func TestMoved(t *testing.T) {
	p := &Plan{Moved: &Moved{Host: "/home/u/app", Inside: "/w"}}
	for host, inside := range map[string]string{"/home/u/app": "/w", "/home/u/app/a": "/w/a",
		"/home/u/app2": "/home/u/app2", "/usr": "/usr", "/home/u": "/home/u"} {
		if got := p.Inside(host); got != inside {
			t.Errorf("%s is at %s, want %s", host, got, inside)
		}
		if got := p.OnHost(inside); got != host {
			t.Errorf("%s is %s, want %s", inside, got, host)
		}
	}
	if got := (&Plan{}).OnHost("/w/a"); got != "/w/a" {
		t.Error(got)
	}
	for m, want := range map[Moved]bool{{"/home/u/app", "/w"}: true, {"/home/u/app", "/home/u/app/w"}: false,
		{"/home/u/app", "/home/u"}: false, {"/w", "/w"}: false, {"/", "/w"}: false, {"/a", "w"}: false,
		{"/a", "/w/"}: false} {
		if err := m.validate(); (err == nil) != want {
			t.Errorf("%+v: %v", m, err)
		}
	}
}
