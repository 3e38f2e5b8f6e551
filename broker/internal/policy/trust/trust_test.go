package trust

import (
	"os"
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
