package plan

import (
	"reflect"
	"strings"
	"testing"
)

// gated is sample with a root that the broker serves.
func gated() *Plan {
	p := sample()
	p.Mounts[0] = Mount{Kind: Fuse, Target: "/", Access: ReadWrite}
	p.Fds = append(p.Fds, FdUserNS, FdMountNS)
	p.Gate = &Gate{Dirs: []GateDir{
		{Path: "/", Ask: true, Names: []GateName{{Name: "bin", Kind: Symlink, Target: "usr/bin"}, {Name: "f\xff", Kind: File,
			Access: ReadOnly}, {Name: "gone", Kind: Absent}}},
		{Path: "/p", Place: true},
	}}
	return p
}

func TestGate(t *testing.T) {
	p := gated()
	b, err := Encode(p)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := Decode(b); err != nil || !reflect.DeepEqual(got, p) {
		t.Errorf("decoded %+v, %v", got, err)
	}
	for _, want := range []string{`gate       / asks symlink=bin->usr/bin file="f\xff" absent=gone`,
		"gate       /p mounted\n"} {
		if !strings.Contains(p.Text(), want) {
			t.Errorf("%s is missing in\n%s", want, p.Text())
		}
	}
	for _, c := range []struct {
		name, want string
		spoil      func(*Plan)
	}{
		{"no description", "need each other", func(p *Plan) { p.Gate = nil }},
		{"no served root", "need each other", func(p *Plan) { p.Mounts[0].Kind = Tmpfs }},
		{"no agent", "no descriptors", func(p *Plan) { p.Fds = p.Fds[:2] }},
		{"no root", "first is not /", func(p *Plan) { p.Gate.Dirs = p.Gate.Dirs[1:] }},
		{"twice", "out of order", func(p *Plan) { p.Gate.Dirs[1].Path = "/" }},
		{"unclean", "clean path", func(p *Plan) { p.Gate.Dirs[1].Path = "/p/../q" }},
		{"place with names", "place=true", func(p *Plan) { p.Gate.Dirs[1].Names = p.Gate.Dirs[0].Names }},
		{"place that asks", "place=true", func(p *Plan) { p.Gate.Dirs[1].Ask = true }},
		{"slash in a name", "not a name", func(p *Plan) { p.Gate.Dirs[0].Names[0].Name = "a/b" }},
		{"dots", "not a name", func(p *Plan) { p.Gate.Dirs[0].Names[0].Name = ".." }},
		{"file without access", "no access", func(p *Plan) { p.Gate.Dirs[0].Names[1].Access = "" }},
		{"link without text", "cannot be", func(p *Plan) { p.Gate.Dirs[0].Names[0].Target = "" }},
		{"absent with text", "cannot be", func(p *Plan) { p.Gate.Dirs[0].Names[2].Target = "x" }},
		{"another kind", "cannot be", func(p *Plan) { p.Gate.Dirs[0].Names[2].Kind = Bind }},
	} {
		p := gated()
		c.spoil(p)
		if err := p.Validate(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}
