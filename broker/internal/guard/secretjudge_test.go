package guard

import "testing"

// TestSecretBesideGuard: that a name is a secret's takes nothing from what guards it, and the other way round.
func TestSecretBesideGuard(t *testing.T) {
	j, err := NewJudge(append([]Rule{{Pattern: "hid/.env", Action: Hide}, {Pattern: "shown/.env", Action: Allow}},
		BuiltIn()...), HideSecrets)
	if err != nil {
		t.Fatal(err)
	}
	for rel, want := range map[string]struct {
		action Action
		secret bool
	}{
		".env": {Free, true}, "a/b/.env.local": {Free, true}, "key.pem": {Free, true}, "data.json": {Free, true},
		"main.go":               {Free, false},
		".vscode/settings.json": {Guard, true}, ".vscode/.env": {Guard, true}, ".mcp.json": {Guard, true}, ".envrc": {Guard,
			false},
		"node_modules/x/.env": {Free, false}, "node_modules/.vscode/x.json": {Free, false}, "a/vendor/key.pem": {Free, false},
		".git/refs/heads/prod.env": {Free, false}, ".git/hooks/x.env": {Guard, false}, ".git/modules/vendor/hooks/x.env": {
			Guard, false},
		".envs/prod/db": {Free, true}, ".envs/vendor/db": {Free, false}, "hid/.env": {Hide, false}, "shown/.env": {Free,
			false},
	} {
		if v := j.At(rel, nil); v.Action != want.action || (v.Secret != nil) != want.secret {
			t.Errorf("%s: action %d, secret %v; want %d, %v", rel, v.Action, v.Secret != nil, want.action, want.secret)
		}
	}
	// no directory with hidden names in it may get a name below which nothing is hidden, or the other way round
	root := j.Root()
	for _, name := range []string{"node_modules", "vendor", ".envs", ".git"} {
		if root.Below("src").Alike(root.Below(name)) {
			t.Errorf("src and %s are alike", name)
		}
	}
	if !root.Below("src").Alike(root.Below("lib")) {
		t.Error("src and lib are not alike")
	}
	if root.Below("src").Free() {
		t.Error("a place with names of secrets counts as free")
	}
}
