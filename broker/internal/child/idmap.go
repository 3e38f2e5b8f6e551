//go:build linux

package child

import (
	"errors"
	"fmt"

	"sbx.example/sbx/broker/internal/steps"
)

// writeMaps is the broker's part of awaitMaps.
func (c *Child) writeMaps(write func(pid int) error) error {
	if write == nil || !c.plan.Identity.HasRanges() {
		return errors.New("BUG(sbx): nobody writes the identity maps")
	}
	if err := write(c.PID); err != nil {
		return fmt.Errorf("mapping subordinate ids: %w", err)
	}
	if err := steps.Go(c.sock); err != nil {
		return fmt.Errorf("telling process 1 of its ids: %w", err)
	}
	return nil
}
