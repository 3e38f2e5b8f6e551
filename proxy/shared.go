//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"filippo.io/age"

	"sbx.example/sbx/shared/proxied"
	"sbx.example/sbx/shared/turn"
)

// shared is what a login needs to be the same in every session of the user: one at a time asks its token endpoint, and
// requests carry what any of them was issued last.
type shared struct {
	turn   *turn.Turn
	own    *age.X25519Identity // to whom the tokens of other sessions come sealed: the store's key is not here any more
	told   chan proxied.Tokens // what sbx answers
	over   <-chan struct{}     // sbx answers nothing more
	places chan struct{}       // of requests that wait for their turn
	asking chan struct{}       // who of this session asks the token endpoint
	// telling is who of this session waits for sbx's answer, and who replaces the tokens
	telling chan struct{}

	patience time.Duration // how long a request waits for its turn
	failed   time.Time     // when sbx could not say; telling's
}

const (
	// maxKept bounds what is kept of a login: it is one report.
	maxKept = 512 << 10
	// maxWaiting bounds the requests that wait for their turn, and so their bodies.
	maxWaiting = 16
	// askPatience is how long a token endpoint may take, and turnPatience how long a request waits for its turn.
	askPatience  = time.Minute
	turnPatience = 90 * time.Second
	// look is how often who waits looks whether it is its turn, and rest how long a session waits before the next: the
	// others have looked by then.
	look = 10 * time.Millisecond
	rest = 25 * time.Millisecond
	// retry is how long requests go on with the tokens that are known, where newer ones cannot be had.
	retry = time.Second
)

var errOver = errors.New("the session has ended")

func newShared(f *os.File, over <-chan struct{}) (shared, error) {
	own, err := age.GenerateX25519Identity()
	return shared{turn: turn.Inherited(f), own: own, over: over, patience: turnPatience,
		told: make(chan proxied.Tokens, 1), places: make(chan struct{}, maxWaiting),
		asking: make(chan struct{}, 1), telling: make(chan struct{}, 1)}, err
}

// await waits until it is this session's turn to ask the token endpoint, and this request's. leave gives it to others.
func (s *shared) await(ctx context.Context) (leave func(), _ error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.patience, fmt.Errorf(
		"another request to its token endpoint, in this session or another one, has not ended in %v", s.patience))
	defer cancel()
	select {
	case s.asking <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-s.over:
		return nil, errOver
	}
	for {
		mine, err := s.turn.Take()
		if mine {
			return sync.OnceFunc(func() {
				_ = s.turn.Leave()
				time.AfterFunc(rest, func() { <-s.asking })
			}), nil
		}
		if err == nil {
			select {
			case <-time.After(look):
				continue
			case <-ctx.Done():
				err = context.Cause(ctx)
			}
		}
		<-s.asking
		return nil, err
	}
}

// newest has the tokens be those that were issued last, in whatever session. Where that has just failed, it fails at
// once, if may says so.
func (l *login) newest(ctx context.Context, may bool) error {
	if l.isNewest() {
		return nil
	}
	select {
	case l.telling <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-l.telling }()
	switch {
	case l.isNewest():
		return nil
	case may && time.Since(l.failed) < retry:
		return errors.New("newer tokens could not be had")
	}
	err := l.load()
	if l.failed = (time.Time{}); err != nil {
		l.failed = time.Now()
	}
	return err
}

// isNewest says whether no other session was issued more. Nothing follows the end.
func (l *login) isNewest() bool {
	m, err := l.turn.Mark()
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ended || err == nil && m == l.mark && !l.turn.Ended()
}

// load takes over what another session was issued.
func (l *login) load() error {
	l.mu.Lock()
	have := l.mark
	l.mu.Unlock()
	t, ok := l.tell(proxied.Report{Newer: &proxied.Newer{Secret: l.Name, Have: have, Key: l.own.Recipient().String()}})
	switch {
	case !ok:
		return errOver
	case t.Ended:
		l.end()
		return turn.ErrEnded
	case t.Why != "":
		return errors.New(t.Why)
	case t.Mark == have:
		return nil
	}
	var text io.Reader = strings.NewReader("[]") // somebody has removed the file
	var err error
	if len(t.Sealed) > 0 {
		text, err = age.Decrypt(bytes.NewReader(t.Sealed), l.own)
	}
	if err == nil {
		err = l.take(text)
	}
	if err == nil {
		l.mu.Lock()
		l.mark = t.Mark
		l.mu.Unlock()
	}
	return err
}

// keep has sbx write down the tokens, sealed: this program writes no files. Where that fails they last for the session,
// and sbx says so.
func (l *login) keep(a answer) error {
	l.mu.Lock()
	l.last = a
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	err := errors.Join(e.Encode(l.tokens), e.Encode(l.last), e.Encode(l.Login))
	l.mu.Unlock()
	if err != nil {
		return err
	}
	if text.Len() > maxKept {
		return errors.New("what it has issued is too long")
	}
	sealed, err := sealTo(l.to, text.Bytes())
	if err != nil {
		return fmt.Errorf("what it has issued cannot be sealed: %w", err)
	}
	switch t, ok := l.tell(proxied.Report{Issued: &proxied.Issued{Secret: l.Name, Sealed: sealed}}); {
	case t.Ended:
		l.end()
		return turn.ErrEnded
	case ok && t.Why == "":
		l.mu.Lock()
		l.mark = t.Mark
		l.mu.Unlock()
	}
	return nil
}

// tell reports something to sbx, and waits for its answer. Who has telling calls it, and none gives up: the next would
// take the answer for its own.
func (l *login) tell(r proxied.Report) (proxied.Tokens, bool) {
	l.out.send(r)
	select {
	case t := <-l.told:
		return t, true
	case <-l.over:
		return proxied.Tokens{}, false
	}
}

// end forgets the tokens of a login that was removed.
func (l *login) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended, l.last = true, answer{}
	for i := range l.tokens {
		l.tokens[i].Value = ""
	}
}

func (l *login) hasEnded() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ended
}

// known is the answer that another program got to the same request while this one waited.
func (l *login) known(asked string, was turn.Mark) (answer, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last, l.last.Asked == asked && l.mark != was
}

// told hands on what sbx says of a login.
func (p *proxy) told(t *proxied.Tokens) {
	if l := p.login(t.Secret); l != nil {
		select {
		case l.told <- *t:
		default: // nobody has asked
		}
	}
}

// finish waits a moment for what token endpoints were asked: what they issue would be lost.
func (p *proxy) finish(patience time.Duration) {
	end := time.After(patience)
	for _, l := range p.logins {
		select {
		case l.asking <- struct{}{}:
		case <-end:
			return
		}
	}
}
