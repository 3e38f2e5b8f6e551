//go:build linux

package changes

import (
	"path"
	"strings"

	"sbx.example/sbx/broker/internal/guard"
)

// placeOf is the place that the names in a directory are in.
func (s *scanner) placeOf(dir string) *guard.Place {
	if p := s.places[dir]; p != nil {
		return p
	}
	p := s.judges.Root()
	if dir != "" {
		p = s.placeOf(strings.TrimPrefix(path.Dir("/"+dir), "/")).Below(path.Base(dir))
	}
	if !p.Hidden() && s.isRepository(dir) {
		p = p.Repository()
	}
	if s.places == nil {
		s.places = make(map[string]*guard.Place)
	}
	s.places[dir] = p
	return p
}

// isRepository says whether git takes a directory for a repository by itself: the layer or the host has a HEAD in it.
func (s *scanner) isRepository(dir string) bool {
	if known, ok := s.heads[dir]; ok {
		return known
	}
	has := hasName(s.upper, dir, "HEAD") || s.host >= 0 && hasName(s.host, dir, "HEAD")
	if s.heads == nil {
		s.heads = make(map[string]bool)
	}
	s.heads[dir] = has
	return has
}

// inNewRepository says whether rel is, or lies in, the .git of a directory below the top which the host does not have:
// whoever enters that directory runs git there.
func (s *scanner) inNewRepository(c *Change, rel string) bool {
	parts := strings.Split(rel, "/")
	for i := 1; i < len(parts); i++ {
		if guard.Fold(parts[i]) != ".git" {
			continue
		}
		return i == len(parts)-1 && c.Op == Added || i < len(parts)-1 && (s.host < 0 ||
			!hasName(s.host, strings.Join(parts[:i], "/"), parts[i]))
	}
	return false
}
