package host

import (
	"reflect"
	"strings"
	"testing"
)

const mountinfo = `22 1 254:1 / / rw,relatime - ext4 /dev/root rw
23 22 0:21 / /proc rw,nosuid - proc proc rw
30 22 254:1 /home/u/src /mnt/src rw - ext4 /dev/root rw
31 22 254:1 /home /srv/home\040dir rw shared:1 master:2 - ext4 /dev/root rw
32 22 254:2 / /data rw - xfs /dev/sdb rw
33 32 254:2 /sub /data/again ro - xfs /dev/sdb rw
34 22 0:30 / /tab\011nl\012bs\134end rw - tmpfs none rw

broken line
35 22
`

func TestParseMounts(t *testing.T) {
	got := ParseMounts(mountinfo)
	want := []Mount{
		{"254:1", "/", "/", "ext4"}, {"0:21", "/", "/proc", "proc"}, {"254:1", "/home/u/src", "/mnt/src", "ext4"},
		{"254:1", "/home", "/srv/home dir", "ext4"},
		{"254:2", "/", "/data", "xfs"}, {"254:2", "/sub", "/data/again", "xfs"}, {"0:30", "/", "/tab\tnl\nbs\\end", "tmpfs"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %q", got)
	}
}

func TestAliases(t *testing.T) {
	mounts := ParseMounts(mountinfo)
	for in, want := range map[string][]string{
		"/home/u/src/.env":       {"/mnt/src/.env", "/srv/home dir/u/src/.env"},
		"/home/u/.ssh":           {"/srv/home dir/u/.ssh"},
		"/home/u/src":            {"/mnt/src", "/srv/home dir/u/src"},
		"/mnt/src/.env":          {"/home/u/src/.env", "/srv/home dir/u/src/.env"},
		"/srv/home dir/u/.ssh":   {"/home/u/.ssh"},
		"/home/u/srcs":           {"/srv/home dir/u/srcs"},
		"/data/sub/x":            {"/data/again/x"},
		"/data/again/x":          {"/data/sub/x"},
		"/data/x":                nil,
		"/proc/self":             nil,
		"/tab\tnl\nbs\\end/file": nil,
	} {
		if got := Aliases(mounts, in); !reflect.DeepEqual(got, want) {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
	if got := Aliases(nil, "/x"); got != nil {
		t.Errorf("no mounts: %q", got)
	}
}

// Two file systems mounted over one place: only the last is seen there.
func TestAliasesOfStackedMounts(t *testing.T) {
	mounts := []Mount{{"1:1", "/", "/", "ext4"}, {"1:2", "/", "/m", "ext4"}, {"1:3", "/", "/m", "ext4"},
		{"1:3", "/", "/n", "ext4"}, {"1:2", "/", "/o", "ext4"}}
	if got, want := Aliases(mounts, "/m/x"), []string{"/n/x"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestBelow(t *testing.T) {
	mounts := ParseMounts(mountinfo)
	if got, want := Below(mounts, "/data"), []string{"/data/again"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := Below(mounts, "/dat"); got != nil {
		t.Errorf("got %q", got)
	}
	if got := Below(mounts, "/"); len(got) != 6 {
		t.Errorf("got %q", got)
	}
}

func TestLookup(t *testing.T) {
	env := []string{"A=1", "AB=2", "E=", "A=3", "X"}
	for name, want := range map[string]string{"A": "1", "AB": "2", "E": "", "X": "", "B": "", "": ""} {
		if got := Lookup(env, name); got != want {
			t.Errorf("%q is %q, want %q", name, got, want)
		}
	}
}

func FuzzParseMounts(f *testing.F) {
	f.Add(mountinfo)
	f.Fuzz(func(t *testing.T, text string) {
		for _, m := range ParseMounts(text) {
			if strings.Count(text, "\n") == 0 && strings.Contains(m.Point, "\n") && !strings.Contains(text, `\`) {
				t.Fatalf("a newline came from nowhere: %q", m.Point)
			}
			Aliases([]Mount{m, m}, m.Point+"/x")
		}
	})
}
