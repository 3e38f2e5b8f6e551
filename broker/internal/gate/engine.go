//go:build linux

package gate

import (
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/request"
)

// The engines of a dynamic session; a static one has none.
const (
	EngineFiles  = "gatefs"
	EngineNotify = "notify"
)

// Choose chooses who notices an access that is not granted.
func Choose(mode string, cfg request.Settings, facts host.Facts) string {
	switch {
	case mode != "dynamic":
		return ""
	case cfg.Sandbox.Gate != EngineNotify && facts.Fuse:
		return EngineFiles
	}
	return EngineNotify
}
