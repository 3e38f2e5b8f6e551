package guard

import "sync"

// Session remembers what a session made and took away, for the rule that what it makes is its own: in a directory
// that was not there nothing outside acts upon a name, so the built-in rules do not hold there until the session
// ends, but for those of Source. A directory is its own when it was made where none was, in an ordinary directory, or
// in one that is the session's own. One that takes the place of another that was there is as guarded as that was. The
// zero value remembers nothing yet.
type Session struct {
	own Made
	// Witness is told of what the session leaves. May be nil.
	Witness Witness
	// Parts is told of a directory before names in it are free because the session made it: which of the places above
	// are parts of a repository that was there is then told to Expect. May be nil.
	Parts func(dir string)
	// Linked is told of a directory before a .git file there leads to a repository's directory. It says whether git may
	// use that one there: whether what its index names runs nothing. Alone holds. May be nil.
	Linked func(dir, git string) bool
	// Turn takes the turn among all sessions that may write the same trees, and returns what gives it back. Nil: it
	// cannot be had now. It may be nil: there are no others.
	Turn func() (done func())

	renaming sync.Mutex // see Alone

	mu     sync.Mutex
	places places
}

// Witness hears of what a session makes that somebody may run outside.
type Witness interface {
	// Changing is told of a name of what people run by a build or a test, in a directory that is open, before the session
	// may write what has it, gives it to something or takes it away. Path is where it is outside.
	Changing(id ID, dir int, name, path string)
	// Came is told of such a name in a directory that takes the place of one that was there, before it does.
	Came(id ID, name, path string)
	// Repository is told of the session's own directory, open, that becomes a repository by itself for git.
	Repository(id ID, dir int)
	// Workspace is told of a name that gets into a directory, open, below a repository of the session's own, and that a
	// rule of Source is about.
	Workspace(id ID, dir int, name string)
}

// Alone is called before a rename, or a .git file, is judged, and what it returns when that is done. What an index may
// name depends on the directories that are there, and what it says on the repository's other files. With turn no other
// session does such a thing meanwhile either: directories stay where they are. Nil: that cannot be had.
func (s *Session) Alone(turn bool) (done func()) {
	s.renaming.Lock()
	if !turn || s.Turn == nil {
		return s.renaming.Unlock
	}
	back := s.Turn()
	if back == nil {
		s.renaming.Unlock()
		return nil
	}
	return func() {
		back()
		s.renaming.Unlock()
	}
}

// maxFreed bounds what is remembered of names that were freed: a tree of installed packages has some ten thousand
// directories.
const maxFreed = 1 << 17

// places are those of directories that were there before the session and were moved or removed by it. Beyond maxFreed
// every place is one.
type places struct {
	freed  map[ID]map[string]ID // by the directory that they were in and their folded names
	stands map[ID]ID            // what was in the place of a directory that the session made; the zero ID: not known
	moved  map[ID]bool          // those that are elsewhere: which directories are in them is not known
	count  int
	all    bool
}

// WorkTree says whether a directory is the work tree of a repository, where file says whether a file is at a place in
// it.
func WorkTree(file func(rel string) bool) bool { return file(dotGit) || file(dotGit+"/HEAD") }

// Own says whether a directory is the session's own.
func (s *Session) Own(id ID) bool { return s.own.Has(id) }

// WasThere says whether a directory of that name in dir was there before the session, or may have been.
func (s *Session) WasThere(dir ID, name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, was := s.places.was(dir, name)
	return was
}

// Takes says whether a directory that gets a name in dir, whose path is at, takes the place of one that was there, or
// comes to where an index names one. One that comes back to its own name does not.
func (s *Session) Takes(dir ID, at, name string, id ID) bool {
	if s.Parts != nil {
		s.Parts(at)
	}
	if s.Own(dir) {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	there, was := s.places.was(dir, name)
	return was && there != id
}

// Freed says whether WasThere can be true of any.
func (s *Session) Freed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.places.all || s.places.count > 0
}

// Mkdir remembers a directory that the session has made: in dir, of which p holds, where v was said of its name.
func (s *Session) Mkdir(p *Place, v Verdict, dir ID, name string, id ID) {
	if s.Own(dir) {
		s.own.Add(id)
		return
	}
	if !p.Ordinary() || v.Action != Free || v.Anchored { // its name is what makes programs outside look at it
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if there, was := s.places.was(dir, name); was {
		s.places.stand(id, there)
	} else {
		s.own.Add(id)
	}
}

// Left remembers that a directory has left its name in dir. One that tools make anew is not remembered where it is
// plain: nothing in it was guarded.
func (s *Session) Left(dir ID, name string, id ID, plain func() bool) {
	if s.Own(id) || s.Own(dir) {
		return
	}
	forget := Disposable(name) && plain()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !forget || !s.places.emptied(id, map[ID]bool{}) {
		s.places.free(dir, name, id)
	}
}

// Dir is what Rule has to know of a directory, when it matters.
type Dir struct {
	Path       func() string // absolute
	Own        func() bool   // whether it is the session's own
	Repository func() bool   // whether it is in the work tree of a repository of the session's own
}

// Rule says what may be done with a name in a directory, of which p holds, and whether it is said because the directory
// is the session's own.
func (s *Session) Rule(p *Place, name string, dir Dir) (v Verdict, own bool) {
	v = p.Rule(name, ByHost)
	if v.Action == Index && s.Parts != nil {
		s.Parts(dir.Path()) // while it is there
	}
	if v.Action == Free && !v.Anchored || v.Action == Hide || !dir.Own() || !s.keeps(dir) {
		return v, false
	}
	v = p.Rule(name, BySession)
	if (v.Action != Free || v.Anchored) && dir.Repository() {
		v = p.Rule(name, InRepository)
	}
	return v, true
}

// keeps says whether a directory that is the session's own stays so where names in it would be free by that. A place in
// which git outside looks by itself, because an index names it, is not.
func (s *Session) keeps(dir Dir) bool {
	if s.Parts == nil {
		return true
	}
	s.Parts(dir.Path())
	return dir.Own()
}

// Expect remembers that programs outside look for names in a place: what the session makes of that name in dir, which
// it did not make, is as if it had been there.
func (s *Session) Expect(dir ID, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.places.free(dir, name, ID{})
}

// ExpectAll is Expect for every place: where programs outside look is not known. Nothing is the session's own any more.
func (s *Session) ExpectAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.own.clear()
	s.places = places{all: true}
}

// Removed is Left for a directory that is gone. It was empty, so what was in it has left it before.
func (s *Session) Removed(dir ID, name string, id ID) {
	s.Left(dir, name, id, func() bool { return true })
	s.own.Drop(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.places.moved, id)
	s.places.forget(id)
}

// Demote makes directories ones like any others, at a place where one was before. Undo is for when they did not get
// there: those that were the session's own are so again.
func (s *Session) Demote(ids []ID) (undo func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var own []ID
	for _, id := range ids {
		if s.own.Has(id) {
			own = append(own, id)
		}
		s.own.Drop(id)
		s.places.stand(id, ID{})
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, id := range own {
			s.places.forget(id)
			s.own.Add(id)
		}
	}
}

// was finds the directory that had a name in dir, or in the one that was in the place of dir.
func (l *places) was(dir ID, name string) (there ID, was bool) {
	if before, ok := l.stands[dir]; ok {
		if before == (ID{}) || l.moved[before] {
			return ID{}, true
		}
		dir = before
	}
	there, was = l.freed[dir][Fold(name)]
	return there, was || l.all
}

// stand remembers that a directory was made in the place of another.
func (l *places) stand(id, there ID) {
	if l.all {
		return
	}
	if l.stands == nil {
		l.stands = make(map[ID]ID)
	}
	if _, known := l.stands[id]; !known {
		defer l.grow()
	}
	l.stands[id] = there
}

// emptied says whether all that was freed in a directory is gone, and nothing is looked for in it.
func (l *places) emptied(id ID, seen map[ID]bool) bool {
	seen[id] = true
	for _, there := range l.freed[id] {
		if there == (ID{}) || l.moved[there] || !seen[there] && !l.emptied(there, seen) {
			return false
		}
	}
	return true
}

// forget forgets that a directory was made in the place of another.
func (l *places) forget(id ID) {
	if _, ok := l.stands[id]; ok {
		delete(l.stands, id)
		l.count--
	}
}

// free remembers that a directory has left a name. One that stands in the place of another frees that one's.
func (l *places) free(dir ID, name string, id ID) {
	if before, ok := l.stands[dir]; ok {
		dir = before
	}
	before, ok := l.stands[id]
	if l.all || dir == (ID{}) {
		return
	}
	if l.freed == nil {
		l.freed, l.moved = make(map[ID]map[string]ID), make(map[ID]bool)
	}
	if l.freed[dir] == nil {
		l.freed[dir] = make(map[string]ID)
	}
	if ok {
		id = before
	} else {
		l.moved[id] = true
	}
	if other, known := l.freed[dir][Fold(name)]; !known {
		defer l.grow()
	} else if other != id { // the session put another one there meanwhile
		id = ID{}
	}
	l.freed[dir][Fold(name)] = id
}

// grow counts what is remembered.
func (l *places) grow() {
	if l.count++; l.count > maxFreed {
		*l = places{all: true}
	}
}
