package audit

import (
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"
)

// Logs lists the logs, oldest first.
func Logs(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing audit logs: %w", err)
	}
	type log struct {
		path string
		at   time.Time
	}
	var list []log
	for _, e := range entries {
		if info, err := e.Info(); err == nil && strings.HasSuffix(e.Name(), ".jsonl") && info.Mode().IsRegular() {
			list = append(list, log{filepath.Join(dir, e.Name()), info.ModTime()})
		}
	}
	sort.SliceStable(list, func(i, j int) bool { return list[i].at.Before(list[j].at) })
	out := make([]string, len(list))
	for i, l := range list {
		out[i] = l.path
	}
	return out, nil
}
