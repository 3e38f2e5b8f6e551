package request

import (
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/guard"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/policy/pathname"
	"sbx.example/sbx/broker/plan"
)

// GuardJudge is the judge of a guarded directory; the first rule that matches a name decides. What the plan
// hides in it was resolved by the planner: links, other mounts and hard links of secrets included.
func GuardJudge(in *planner.Input, m *plan.Mount) (*guard.Judge, error) {
	dir := m.Target
	var out []guard.Rule
	for _, h := range m.Hide {
		out = append(out, guard.Rule{Pattern: guard.Literal(string(h)), Action: guard.Hide})
	}
	var shown []guard.Rule
	for _, g := range in.Grants {
		rel, ok := strings.CutPrefix(path.Clean(g.Path), dir+"/")
		if !ok || !g.Explicit && g.Path != in.Project {
			continue
		}
		r := guard.Rule{Pattern: guard.Literal(rel), Action: guard.Allow}
		if g.Mode == planner.Write {
			out = append(out, r)
		} else {
			shown = append(shown, r)
		}
	}
	out = append(out, in.ReferredIn(dir)...)
	options := []guard.Option{guard.HideSecrets}
	if foldsCase(dir) {
		options = append(options, guard.FoldAll)
	}
	return guard.NewJudge(append(append(out, guard.BuiltIn()...), shown...), options...)
}

// foldsCase says whether two names in a directory that differ in letter case only may be one.
func foldsCase(dir string) bool {
	const exfat, ntfs3, cifs, smb2, plan9, casefold = 0x2011bab0, 0x7366746e, 0xff534d42, 0xfe534d42, 0x01021997,
		0x40000000
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	var st unix.Statfs_t
	if unix.Fstatfs(fd, &st) == nil {
		switch uint32(st.Type) {
		case unix.MSDOS_SUPER_MAGIC, exfat, ntfs3, cifs, smb2, plan9:
			return true
		}
	}
	flags, err := unix.IoctlGetUint32(fd, unix.FS_IOC_GETFLAGS)
	return err == nil && flags&casefold != 0
}

// GuardedTop is the operation of the outermost guarded directory that a path lies in, or is; nil if there is none.
func GuardedTop(p *plan.Plan, name string) (top *plan.Mount) {
	for i := range p.Mounts {
		m := &p.Mounts[i]
		guards := m.Kind == plan.Judged || m.Kind == plan.Fuse && m.Target != "/"
		if guards && host.Within(name, m.Target) && (top == nil || len(m.Target) < len(top.Target)) {
			top = m
		}
	}
	return top
}

// SocketRules let the sockets be connected to that the command line grants by name.
func SocketRules(in *planner.Input) []policy.Rule {
	var out []policy.Rule
	for _, g := range in.Grants {
		if !g.Socket {
			continue
		}
		r, err := policy.NewRule(policy.Rule{Kind: policy.KindSocket, Pattern: pathname.Escape(g.Path),
			Decision: policy.Allow, Reason: g.Why}, policy.Vars{})
		if err == nil {
			out = append(out, r)
		}
	}
	return out
}
