package guard

import "sync"

// Session remembers what a session made and took away, for the rule that what it makes is its own: in a directory that was not there
// nothing outside acts upon a name, so the built-in rules do not hold there until the session ends. A directory is its own when it was made
// where none was, in an ordinary directory, or in one that is the session's own. One that takes the place of another that was there is as
// guarded as that was. The zero value remembers nothing yet.
type Session struct {
	own, again Made
	freed      freed
}

// maxFreed bounds what is remembered of names that were freed.
const maxFreed = 1 << 16

// freedName is the place of a directory that was there before the session and was moved or removed by it.
type freedName struct {
	dir  ID
	name string
}

// freed are such places. Beyond maxFreed every place counts as one.
type freed struct {
	mu    sync.Mutex
	names map[freedName]struct{}
	all   bool
}

// Own says whether a directory is the session's own.
func (s *Session) Own(id ID) bool { return s.own.Has(id) }

// WasThere says whether a directory of that name in dir was there before the session, or may have been.
func (s *Session) WasThere(dir ID, name string) bool {
	if s.again.Has(dir) {
		return true
	}
	s.freed.mu.Lock()
	defer s.freed.mu.Unlock()
	_, ok := s.freed.names[freedName{dir, Fold(name)}]
	return ok || s.freed.all
}

// Mkdir remembers a directory that the session has made: in dir, of which p holds, where v was said of its name.
func (s *Session) Mkdir(p *Place, v Verdict, dir ID, name string, id ID) {
	switch {
	case s.Own(dir):
		s.own.Add(id)
	case !p.Ordinary() || v.Action != Free || v.Anchored: // its name is what makes programs outside look at it
	case s.WasThere(dir, name):
		s.again.Add(id)
	default:
		s.own.Add(id)
	}
}

// Left remembers that a directory has left its name in dir.
func (s *Session) Left(dir ID, name string, id ID) {
	if s.Own(id) || s.Own(dir) || Disposable(name) {
		return
	}
	s.freed.mu.Lock()
	defer s.freed.mu.Unlock()
	if s.freed.names == nil {
		s.freed.names = make(map[freedName]struct{})
	}
	s.freed.all = s.freed.all || len(s.freed.names) >= maxFreed
	if !s.freed.all {
		s.freed.names[freedName{dir, Fold(name)}] = struct{}{}
	}
}

// Drop forgets a directory that is gone.
func (s *Session) Drop(id ID) {
	s.own.Drop(id)
	s.again.Drop(id)
}

// Demote makes directories ones like any others, at a place where one was before.
func (s *Session) Demote(ids []ID) {
	for _, id := range ids {
		s.own.Drop(id)
		s.again.Add(id)
	}
}
