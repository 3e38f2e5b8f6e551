//go:build linux

package gatefs

import (
	"os"
	"runtime"
	"testing"

	"sbx.example/sbx/broker/internal/gate/fuse"
	"sbx.example/sbx/broker/internal/gate/nodes"
)

// An open directory costs the server a descriptor and little else, also after it was listed: programs hold thousands.
func TestListedDirectoriesHoldNoBuffers(t *testing.T) {
	const many = 500
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/name", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s, handles := &Server{}, make([]*handle, many)
	for i := range handles {
		f, err := os.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		handles[i] = &handle{fd: int(f.Fd()), node: &nodes.Node{}}
	}
	before := inUse()
	for _, h := range handles {
		var names []string
		err := s.listHost(h, 0, func(e fuse.DirEntry) bool { names = append(names, e.Name); return true })
		if err != nil || len(names) != 3 {
			t.Fatalf("listed %q: %v", names, err)
		}
	}
	after := inUse()
	if grown := int64(after) - int64(before); grown > many*1024 {
		t.Errorf("%d bytes are held for each of %d listed directories", grown/many, many)
	}
	runtime.KeepAlive(handles)
}

func inUse() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
