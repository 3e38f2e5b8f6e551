//go:build linux

package egress

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"sbx.example/sbx/broker/internal/network"
	"sbx.example/sbx/broker/internal/planner"
)

// A carrier is advised to who has none, and to nobody else: ids that cannot be mapped are not mended by one.
func TestHintOfANetworkThatFailed(t *testing.T) {
	none := fmt.Errorf("starting the sandbox's network: %w", &network.NoCarrier{})
	for _, c := range []struct {
		err  error
		want string
	}{
		{none, "install pasta"},
		{errors.New("mapping subordinate ids: newuidmap: write to uid_map failed"), "sbx doctor says what is missing"},
		{fmt.Errorf("opening /dev/net/tun: %w", syscall.EACCES), "the device must exist"},
	} {
		o := &Network{carried: make(chan struct{}), failed: c.err}
		close(o.carried)
		err := o.AwaitCarrier()
		var r *planner.Refusal
		if !errors.As(err, &r) || !strings.HasPrefix(r.Hint, c.want) {
			t.Errorf("%v: %+v, want %q", c.err, r, c.want)
		}
	}
}
