package planner

import (
	"cmp"
	"errors"
	"path"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/plan"
)

// What cannot be looked at is never taken for absent: a program may have taken rights off what it could write, and can
// put them back when the plan is made.

// maxUnread bounds the directories that a plan leaves out because they cannot be looked through.
const maxUnread = 256

// searchedLevels bounds how deep a directory lies that is searched. A rule has fewer than 256 names, and a path that is
// named to the kernel 4,095 bytes (path_resolution(7)); what lies deeper could be given no rule.
const searchedLevels = 200

// list lists a directory that is searched.
func (in *Input) list(dir string) ([]host.Entry, error) {
	if strings.Count(dir, "/") > searchedLevels {
		return nil, unix.ENAMETOOLONG
	}
	list, err := in.FS.ReadDir(dir)
	if err == nil && len(list) > 0 { // one may be listed of which no name can be looked at
		if _, e := in.FS.Lstat(path.Join(dir, list[0].Name)); !host.NotExist(e) {
			err = e
		}
	}
	return list, err
}

// shut is what keeps p from being looked at, as err says, and could be opened by somebody inside: p itself, or a
// directory on the way. It is "" where p is missing, or where nobody with the person's rights can open it.
func (in *Input) shut(p string, err error) string {
	if err == nil || host.NotExist(err) || errors.Is(err, host.ErrForeign) { // see closed
		return ""
	}
	for p != "/" && !in.FS.Access(path.Dir(p), unix.X_OK) {
		p = path.Dir(p)
	}
	st, e := in.FS.Lstat(p)
	if errors.Is(err, syscall.EACCES) && (e != nil || st.UID != in.Facts.UID) &&
		(st.Type != host.Dir || !in.FS.Access(p, unix.X_OK)) {
		return ""
	}
	return p
}

// leaveOut notes a directory that cannot be looked through, as err says. One that nobody inside could look into stays:
// what lies there cannot be had.
func (in *Input) leaveOut(dir string, err error) (at string) {
	at = in.shut(dir, err)
	if at != "" && !slices.Contains(in.Unread, at) {
		in.Unread = append(slices.Clip(in.Unread), at)
	}
	return at
}

// leaveOut hides a directory that cannot be looked through.
func (v *view) leaveOut(dir string, err error) { v.hideAt(v.in.leaveOut(dir, err), false) }

// unreadable refuses a plan for a file or directory of git's that cannot be looked at, as err says.
func (in *Input) unreadable(p string, err error) {
	at := in.shut(p, err)
	if at == "" && !errors.Is(err, host.ErrForeign) || in.refused != nil {
		return
	}
	hint := "mend or remove what is there, or what leads there"
	if errors.Is(err, syscall.EACCES) {
		hint = "chmod u+rX " + plan.Bytes(cmp.Or(at, p)).Quote()
	}
	in.refused = &Refusal{What: "git acts upon " + plan.Bytes(p).Quote() + ", which cannot be read", Err: baseError(err),
		Hint: "without it nobody knows what is to be guarded: " + hint}
}

// leftOut says what is. A plan that would leave too much out is refused, and one without a tree that it is to show.
func (v *view) leftOut() error {
	in := v.in
	for _, p := range in.Unread {
		if slices.ContainsFunc(v.trees, func(t shownTree) bool { return host.Within(t.root, p) }) {
			return &Refusal{What: plan.Bytes(p).Quote() + " cannot be looked through for what is to be hidden or guarded",
				Hint: "chmod u+rx " + plan.Bytes(p).Quote()}
		}
	}
	switch n := len(in.Unread); {
	case n > maxUnread:
		return &Refusal{What: "too many places cannot be looked through, such as " +
			plan.Bytes(in.Unread[0]).Quote(), Hint: "chmod u+rx what is your own, and move what is too much"}
	case n == 0:
		return nil
	}
	v.losses = append(v.losses, Loss{What: plan.Few(quoted(in.Unread), 4, ", "), Price: true,
		Why: "what cannot be looked through may hold hidden or guarded names, so it does not exist inside",
		Fix: "chmod u+rx, or move what lies too deep or is too much, if programs need what is in it"})
	return nil
}

// setting reads a file that git acts upon.
func (in *Input) setting(file string) ([]byte, bool) {
	text, err := in.FS.Peek(file, 0, MaxConfigSize+1)
	if len(text) > MaxConfigSize {
		err = syscall.EFBIG
	}
	in.unreadable(file, err)
	return text, err == nil
}
