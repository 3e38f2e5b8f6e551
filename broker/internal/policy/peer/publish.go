package peer

import (
	"fmt"
	"strings"

	"sbx.example/sbx/broker/internal/policy/excerpt"
)

// CheckPublish accepts [IP:]HOST:PORT, both numbers being ports.
func CheckPublish(s string) error {
	body := s
	if i := strings.LastIndexByte(s, ':'); i >= 0 {
		if j := strings.LastIndexByte(s[:i], ':'); j >= 0 {
			h, err := Parse(s[:j])
			if err != nil || !h.Addr.IsValid() {
				return fmt.Errorf("%s does not start with an address", excerpt.Quote(s))
			}
			body = s[j+1:]
		}
		a, b, _ := strings.Cut(body, ":")
		_, err1 := ParsePort(a)
		_, err2 := ParsePort(b)
		if err1 == nil && err2 == nil {
			return nil
		}
	}
	return fmt.Errorf("%s is not [IP:]HOSTPORT:PORT, with ports from 1 to 65535", excerpt.Quote(s))
}
