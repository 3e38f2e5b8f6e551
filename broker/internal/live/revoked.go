package live

import (
	"errors"

	"sbx/broker/internal/policy"
)

// revoked is what a session's socket does when it is told to forget.
func (a *asking) revoked(kind, name string) (int, error) {
	switch k := policy.Kind(kind); k {
	case policy.KindPath, policy.KindSocket, policy.KindHost:
		n := a.arb.Revoke(k, name)
		if a.outlet != nil && k == policy.KindHost {
			a.outlet.Forget(name)
		}
		if k == policy.KindHost {
			return n, nil
		}
		return n, a.engine.Forget(name)
	}
	return 0, errors.New("answers are about a path, socket or host")
}
