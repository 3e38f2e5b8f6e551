package arbiter

import (
	"errors"
	"fmt"

	"sbx.example/sbx/broker/internal/decide"
)

// undo takes an answer back: the rules that it wrote, what it granted or refused, and what is remembered of it for a
// while. What was opened by it stays open, as with Revoke.
func (a *Arbiter) undo(c decide.Consent) error {
	if c.Answer.Persist != "" {
		if a.opt.Unstore == nil {
			return errors.New("this session takes no stored answer back: sbx policy remove does")
		}
		rules, err := c.Rules(a.opt.Now())
		if err == nil {
			err = a.opt.Unstore(c.Answer.Persist, rules)
		}
		if err != nil {
			return err
		}
	}
	for _, g := range c.Covers {
		a.grants.Take(g)
	}
	a.mu.Lock()
	a.seen.clear()
	a.once, a.walks = nil, nil
	a.mu.Unlock()
	if err := a.log.undone(c); err != nil {
		return fmt.Errorf("it is taken back, but cannot be recorded: %w", err)
	}
	if a.opt.Undone == nil {
		return nil
	}
	return a.opt.Undone(c)
}
