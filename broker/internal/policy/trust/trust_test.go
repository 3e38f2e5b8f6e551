package trust

import (
	"os"
	"strings"
	"testing"
)

// What was pinned can be shown later, but only if it still is what was pinned.
func TestKeptBytesAreChecked(t *testing.T) {
	dir, uid := t.TempDir(), os.Geteuid()
	files := [2][]byte{nil, []byte("version = 1\n")}
	if err := Keep(dir, files, uid); err != nil {
		t.Fatal(err)
	}
	pins := Pins{"-", hash(files[1])}
	if got, ok := Kept(dir, pins, uid); !ok || string(got[1]) != string(files[1]) || got[0] != nil {
		t.Fatalf("%q %v", got, ok)
	}
	os.WriteFile(dir+"/pinned/"+pins.Policy, []byte("version = 1 \n"), 0o600)
	if _, ok := Kept(dir, pins, uid); ok {
		t.Fatal("changed bytes were taken for the pinned ones")
	}
}

// TestTold: the same lines of the same files of the same project are told once. The list is bounded, keeps nothing that
// sbx has not written, and says nothing of trust.
func TestTold(t *testing.T) {
	dir, uid := t.TempDir(), os.Geteuid()
	pins, other := PinsOf([2][]byte{[]byte("a"), nil}), PinsOf([2][]byte{[]byte("b"), nil})
	lines := []string{"x", "y"}
	full := "mine\n" + strings.Repeat(strings.Repeat("0", 64)+"\n", maxTold)
	if err := os.WriteFile(dir+"/told", []byte(full), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Tell(dir, "/p", pins, lines, uid); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		project string
		pins    Pins
		lines   []string
		want    bool
	}{
		{"/p", pins, lines, true}, {"/p", pins, []string{"y", "x"}, true}, {"/q", pins, lines, false},
		{"/p", other, lines, false}, {"/p", pins, []string{"x"}, false}, {"/p", pins, []string{"x y"}, false},
	} {
		if got := Told(dir, c.project, c.pins, c.lines, uid); got != c.want {
			t.Errorf("%+v: told: %v", c, got)
		}
	}
	data, _ := os.ReadFile(dir + "/told")
	if n := strings.Count(string(data), "\n"); n != maxTold || strings.Contains(string(data), "mine") {
		t.Errorf("%d lines", n)
	}
	if l, err := Load(dir, uid); err != nil || l.Trusted("/p", pins) {
		t.Errorf("trusted, %v", err)
	}
	if err := os.Chmod(dir+"/told", 0o666); err != nil {
		t.Fatal(err)
	}
	if Told(dir, "/p", pins, lines, uid) {
		t.Error("a list that others write is believed")
	}
}
