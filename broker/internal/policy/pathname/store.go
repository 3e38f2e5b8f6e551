package pathname

import (
	"fmt"
	"strings"

	"sbx.example/sbx/broker/internal/policy/excerpt"
)

// PackageStore is a store of packages of the host's, [[store]] in the configuration, with the socket of the daemon that
// fills it.
type PackageStore struct {
	Path     string
	Socket   string // "" where nobody but the administrator fills it
	Protocol string // nix: through a filter; plain: as --socket
}

// String is the form that a list of settings has.
func (s PackageStore) String() string {
	if s.Socket == "" {
		return s.Path
	}
	return s.Path + ":" + s.Socket + ":" + s.Protocol
}

// ParseStore reads PATH, PATH:SOCKET or PATH:SOCKET:PROTOCOL.
func ParseStore(text string, vars Vars) (s PackageStore, err error) {
	part := strings.Split(text, ":")
	if len(part) > 3 {
		return s, fmt.Errorf("%s is not PATH:SOCKET:PROTOCOL", excerpt.Quote(text))
	}
	for i := range part[:min(len(part), 2)] {
		if part[i], err = vars.Path(part[i]); err != nil {
			return s, err
		}
		if p, optional := SplitOptional(part[i]); optional || p == "/" || strings.ContainsAny(p, ":\n") {
			return s, fmt.Errorf("%s cannot be a store or its socket", excerpt.Quote(part[i]))
		}
	}
	s.Path = part[0]
	if len(part) > 1 {
		s.Socket, s.Protocol = part[1], "plain"
		if strings.HasSuffix(s.Socket, "/daemon-socket/socket") { // where every Nix has it
			s.Protocol = "nix"
		}
	}
	if len(part) > 2 {
		if s.Protocol = part[2]; s.Protocol != "nix" && s.Protocol != "plain" {
			return s, fmt.Errorf("%s is none of nix, plain", excerpt.Quote(s.Protocol))
		}
	}
	return s, nil
}
