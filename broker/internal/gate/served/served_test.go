//go:build linux

package served

import "testing"

func TestWhole(t *testing.T) {
	tree := Tree{Dirs: []Dir{{Path: "/a/b/c", Kind: Guarded}, {Path: "/a/b", Host: "/elsewhere"}, {Path: "/a b"}}}
	got := ""
	for _, d := range tree.Whole() {
		got += d.Path + "=" + d.Host + " "
	}
	if want := "/= /a= /a b=/a b /a/b=/elsewhere /a/b/c=/a/b/c "; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}
