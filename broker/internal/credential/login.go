//go:build linux

package credential

import (
	"io"
	"os"
	"path"
	"slices"

	"sbx.example/sbx/audit"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/shared/atomicfile"
	"sbx.example/sbx/shared/proxied"
)

// addLogin grants the token endpoint of a login. Nothing stands for it in the environment: the program has its
// placeholders from the endpoint's answers.
func (g *Grants) addLogin(x granted) error {
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
	x.bound(s) // the token endpoint itself is always asked
	return nil
}

// fields are those of a login's answers that are tokens (RFC 6749, 5.1, and OpenID Connect).
func (x *granted) fields() []string {
	if x.Login == "" || len(x.LoginFields) > 0 {
		return x.LoginFields
	}
	return []string{"access_token", "refresh_token", "id_token"}
}

// keep writes down what a login was issued. It is sealed: no value passes through this process.
func (g *Grants) keep(i *proxied.Issued) {
	if !slices.ContainsFunc(g.list, func(x granted) bool { return x.Name == i.Secret && x.Login != "" }) {
		return
	}
	err := atomicfile.ReplaceDurably(path.Join(g.sealed, i.Secret+".age"), 0o600, func(w io.Writer) error {
		_, err := w.Write(i.Sealed)
		return err
	})
	if err != nil {
		text := "what credential " + i.Secret + " was issued lasts for this session only: " + err.Error()
		g.by.Warn(text)
		g.note(audit.Event{Kind: audit.KindError, UID: os.Getuid(), Op: "credential", Reason: text})
	}
}
