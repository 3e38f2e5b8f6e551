//go:build linux

package credential

import (
	"bytes"
	"errors"
	"os"
	"path"
	"slices"
	"sync/atomic"
	"time"

	"sbx.example/sbx/audit"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/shared/proxied"
	"sbx.example/sbx/shared/turn"
)

// addLogin grants the token endpoint of a login, and the folder that a variable names. Nothing stands for a token in
// the environment: the program has its placeholders from the endpoint's answers.
func (g *Grants) addLogin(x granted, variable string, in *planner.Input) error {
	if !host.Exists(path.Join(g.sealed, proxied.PublicKey)) {
		return &planner.Refusal{What: "credential " + x.Name + " (" + x.Origin.String() +
			") keeps what it is issued sealed, and there is no passphrase for that yet",
			Hint: "sbx secret add " + x.Name + " --login " + x.Login + " asks for one"}
	}
	server, at, err := x.TokenEndpoint() // looked at when it was read
	if err != nil {
		return err
	}
	site, err := g.site(server)
	if err != nil {
		return err
	}
	s := &g.sites[site]
	if slices.ContainsFunc(s.Logins, func(l proxied.Login) bool { return l.Path == at }) {
		return &planner.Refusal{What: "credential " + x.Name + " (" + x.Origin.String() + ") has the login of another one: " +
			x.Login, Hint: "grant one of the two"}
	}
	s.Logins = append(s.Logins, proxied.Login{Secret: x.Name, Path: at})
	return g.keepFolder(x.Credential, variable, in)
}

// fields are those of a login's answers that are tokens (RFC 6749, 5.1, and OpenID Connect).
func (x *granted) fields() []string {
	if x.Login == "" || len(x.LoginFields) > 0 {
		return x.LoginFields
	}
	return []string{"access_token", "refresh_token", "id_token"}
}

// login is one of this run's, with what the sessions of the user share of it.
type login struct {
	name   string
	turn   *turn.Turn
	busy   atomic.Bool // sbx-proxy has asked about it, one thing at a time
	unread atomic.Bool // it was said that what another session was issued cannot be read
}

// beginLogin opens the turn of a login. What is kept of it is what sbx-proxy begins with.
func (g *Grants) beginLogin(s *proxied.Secret) (*os.File, error) {
	t, err := turn.Open(g.sealed, s.Name)
	if err != nil {
		return nil, err
	}
	g.logins = append(g.logins, &login{name: s.Name, turn: t})
	if s.Kept, s.Mark, err = t.Kept(); err != nil {
		return nil, err
	}
	return t.Share()
}

// about answers what sbx-proxy asks about a login, in a while: the disk, or another program, is asked first.
func (g *Grants) about(name string, answer func(*login) proxied.Tokens) {
	i := slices.IndexFunc(g.logins, func(l *login) bool { return l.name == name })
	if i < 0 || !g.logins[i].busy.CompareAndSwap(false, true) {
		return
	}
	g.answering.Go(func() {
		l := g.logins[i]
		t := answer(l)
		t.Secret = name
		l.busy.Store(false)
		_ = g.tell(&proxied.Order{Tokens: &t})
	})
}

// keep writes down what a login was issued. It is sealed: no value passes through this process.
func (g *Grants) keep(l *login, sealed []byte) proxied.Tokens {
	m, err := l.turn.Keep(sealed)
	switch {
	case errors.Is(err, turn.ErrEnded):
		return g.removed(l)
	case err != nil:
		text := "what credential " + l.name + " was issued lasts for this session only: " + err.Error()
		g.fault(text)
		return proxied.Tokens{Why: text}
	}
	return proxied.Tokens{Mark: m}
}

// newer has what another session was issued sealed to this one's sbx-proxy, by one that may read it.
func (g *Grants) newer(l *login, n *proxied.Newer) proxied.Tokens {
	sealed, m, err := l.turn.Kept()
	t := proxied.Tokens{Mark: m}
	switch {
	case errors.Is(err, turn.ErrEnded):
		return g.removed(l)
	case err == nil && m != n.Have && m != "":
		t.Sealed, err = g.reseal(sealed, n.Key)
	}
	if err == nil {
		l.unread.Store(false)
		return t
	}
	text := "credential " + l.name + " was issued anew in another session, which cannot be read: " + err.Error()
	if !l.unread.Swap(true) {
		g.fault(text)
	}
	return proxied.Tokens{Why: text}
}

// removed says that a login is no more.
func (g *Grants) removed(l *login) proxied.Tokens {
	g.fault("credential " + l.name + " was removed: this session cannot use it any more")
	return proxied.Tokens{Ended: true}
}

// fault warns of something that goes on to be wrong, and has it on record.
func (g *Grants) fault(text string) {
	g.by.Warn(text)
	g.note(audit.Event{Kind: audit.KindError, UID: os.Getuid(), Op: "credential", Reason: text})
}

// reseal has another sbx-proxy seal to a key what is sealed: the one that serves has no way to the key of the store.
func (g *Grants) reseal(sealed []byte, key string) ([]byte, error) {
	cmd := g.file.Command("reseal", g.sealed, key)
	var out, says bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(sealed), &out, &says
	err := cmd.Start()
	if err == nil {
		late := time.AfterFunc(startPatience, func() { _ = cmd.Process.Kill() })
		err = cmd.Wait()
		late.Stop()
	}
	if err != nil {
		return nil, g.said(says.String(), err)
	}
	return out.Bytes(), nil
}

// closeLogins gives up what no sbx-proxy asks about any more.
func (g *Grants) closeLogins() {
	g.answering.Wait()
	for _, l := range g.logins {
		l.turn.Close()
	}
}
