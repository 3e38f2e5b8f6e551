//go:build linux

package child

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/shared/stage"
)

// writeMaps is the broker's part of awaitMaps.
func (c *Child) writeMaps(write func(pid int) error) error {
	if write == nil || !c.plan.Identity.HasRanges() {
		return errors.New("BUG(sbx): nobody writes the identity maps")
	}
	if err := write(c.PID); err != nil {
		return fmt.Errorf("mapping subordinate ids: %w", err)
	}
	m := stage.Message{Kind: stage.CmdGo}
	if err := unix.Sendto(c.sock, m.Encode(), unix.MSG_NOSIGNAL, nil); err != nil {
		return fmt.Errorf("telling process 1 of its ids: %w", err)
	}
	return nil
}
