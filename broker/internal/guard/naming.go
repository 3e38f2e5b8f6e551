package guard

// Naming is a name that is made in a directory or taken away, or of which the file may be written.
type Naming struct {
	Place *Place           // what holds in the directory
	Name  string           // in it
	Mkdir bool             // it is to be an empty directory
	Rel   string           // below what was granted
	Path  string           // where it is for whoever looks at it outside
	Dir   func() (ID, int) // the directory, open while Note runs; -1: it cannot be opened
}

// Note tells the Witness, before anything is done, of a name that somebody may act upon outside. In the session's own
// directories those are what git acts upon in a repository, whether it is one already or not (git init makes one of it
// and keeps what is there), and what other programs act upon.
func (s *Session) Note(n Naming) {
	if s.Witness == nil {
		return
	}
	git, later := actsInRepository(n.Name, n.Mkdir), !n.Place.Git() && RunLater(n.Rel)
	// Of the rules for names that are free in the session's own directories all are about what is acted upon.
	acts := n.Place.Open() && !n.Place.Git() && n.Place.Rule(n.Name, ByHost).Action == Guard
	if !git && !later && !acts {
		return
	}
	id, dir := n.Dir()
	switch own := dir >= 0 && s.Own(id); {
	case dir < 0:
	case own && git:
		s.Witness.Repository(id, dir)
	case own && acts:
		s.Witness.Workspace(id, dir, n.Name)
	case !own && later:
		s.Witness.Changing(id, dir, n.Name, n.Path)
	}
}

// actsInRepository says whether git takes a directory for a repository by a name in it, or runs something by it there.
// A directory with the name of settings is none.
func actsInRepository(name string, mkdir bool) bool {
	switch Fold(name) {
	case "head", "hooks", "rebase-merge", "rebase-apply":
		return true
	case "config", "config.worktree", "commondir":
		return !mkdir
	}
	return false
}
