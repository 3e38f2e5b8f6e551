//go:build linux

package sandbox

import (
	"context"

	"sbx.example/sbx/broker/client"
	"sbx.example/sbx/broker/internal/live"
)

// Sandbox is one that runs. Package client follows it, answers its questions and starts programs in it, by its SID.
type Sandbox struct {
	SID string

	stop context.CancelFunc
	over chan struct{}
	res  Result
	err  error
}

// Start starts a sandbox and returns when its program runs. With an empty Argv it has none, and stays until it is
// ended: Exec starts programs in it.
func Start(ctx context.Context, q Request) (*Sandbox, error) {
	ctx, stop := context.WithCancel(ctx)
	s := &Sandbox{stop: stop, over: make(chan struct{})}
	stood := make(chan string, 1)
	go func() {
		defer close(s.over)
		s.res, s.err = q.run(ctx, &live.Broker{Idle: len(q.Argv) == 0, Stood: func(sid string) { stood <- sid }})
	}()
	select {
	case s.SID = <-stood:
		return s, nil
	case <-s.over:
	}
	stop()
	select {
	case s.SID = <-stood: // it was over at once
		return s, nil
	default:
	}
	return nil, s.err
}

// Exec runs a program in the sandbox, as confined as the first one, and waits for its end.
func (s *Sandbox) Exec(c client.Command) (*client.End, error) {
	p, err := client.Here().Programs(s.SID)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	return p.Run(c)
}

// Wait waits until the sandbox has ended, with everything in it.
func (s *Sandbox) Wait() (Result, error) {
	<-s.over
	s.stop()
	return s.res, s.err
}

// End ends the sandbox with everything in it, and waits for that. The error of Wait is context.Canceled then.
func (s *Sandbox) End() {
	s.stop()
	<-s.over
}
