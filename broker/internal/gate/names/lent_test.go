//go:build linux

package names

import (
	"testing"

	"sbx.example/sbx/broker/internal/guard"
)

func TestLent(t *testing.T) {
	var l Lent
	a, b := guard.ID{Dev: 1, Ino: 2}, guard.ID{Dev: 1, Ino: 3}
	if l.Add(a); !l.Has(a) || l.Has(b) {
		t.Error("what is lent is told from what is not")
	}
	for i := range uint64(maxLent) {
		l.Add(guard.ID{Dev: 9, Ino: i})
	}
	if !l.Has(b) {
		t.Error("more was lent than is noted, and a file is taken for one that was not")
	}
}
