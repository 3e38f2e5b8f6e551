package records

import (
	"time"

	"sbx.example/sbx/broker/internal/option"
)

// pruneCaches has nothing to remove: only layers keep what a project's programs fetched.
func (t Records) pruneCaches(string, *pruneRequest, time.Duration) int {
	return t.Fail(option.Wrong("--caches works on Linux only: sbx keeps no caches here",
		"a cache is read as it is, see sbx run --help"))
}
