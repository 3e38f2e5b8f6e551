package policy

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"sbx.example/sbx/broker/internal/policy/excerpt"
	"sbx.example/sbx/broker/internal/policy/peer"
)

// Credential is a secret that sbx puts into requests outside of the sandbox: a table [credential.NAME]. It has no
// value: that comes from a command, a variable, a file, or the user's store.
type Credential struct {
	Name                           string
	Kind                           string   // what it is for, where sbx knows that: "github"
	Hosts                          []string // it goes to these, and to no others
	Header                         string   // "Authorization: Bearer {}"
	Basic                          string   // the user whose password it is
	Query                          string   // the parameter that holds it
	AWSSigV4                       []string // it is an access key and signs requests: "SERVICE" or "SERVICE/REGION"
	Allow                          []string // "GET /repos/**"; nil: every request
	Env                            []string // variables that hold the placeholder inside
	FromCommand, FromEnv, FromFile string
	Store                          string   // where the value is that was typed: Keyring, or sealed in a file
	Login                          string   // the token endpoint: the value is what it issues to a program inside
	LoginFields                    []string // of its answers: those that are tokens, the one that requests carry first
	LoginFolder                    string   // the variable by which that program finds the folder that it keeps inside
	Origin                         Origin
}

// Keyring is the Store that the user's session has. The other one is "file", or nothing.
const Keyring = "keyring"

// Stores are where a value can be kept that is typed.
func Stores() []string { return []string{Keyring, "file"} }

// Sealed says whether the value is in a file of sbx's.
func (c *Credential) Sealed() bool {
	return c.FromCommand == "" && c.FromEnv == "" && c.FromFile == "" && c.Store != Keyring
}

// SecretsFolder is where, below the folder of what is trusted, the values are that sbx keeps itself: NAME.age.
const SecretsFolder = "secrets"

// LoginsFolder is where, beside that, the folders are that logins keep for programs inside: one of each name.
const LoginsFolder = "logins"

// field is where a key of the table goes: *string or *[]string.
func (c *Credential) field(name string) any {
	switch name {
	case "kind":
		return &c.Kind
	case "hosts":
		return &c.Hosts
	case "header":
		return &c.Header
	case "basic":
		return &c.Basic
	case "query":
		return &c.Query
	case "aws_sigv4":
		return &c.AWSSigV4
	case "allow":
		return &c.Allow
	case "env":
		return &c.Env
	case "from_command":
		return &c.FromCommand
	case "from_env":
		return &c.FromEnv
	case "store":
		return &c.Store
	case "login":
		return &c.Login
	case "login_fields":
		return &c.LoginFields
	case "login_folder":
		return &c.LoginFolder
	}
	return &c.FromFile
}

// credentialKeys are the rows of a [credential.NAME] table.
func credentialKeys() []key {
	return []key{{name: "kind", typ: tName}, {name: "hosts", typ: tServers}, {name: "header", typ: tText},
		{name: "basic", typ: tName}, {name: "query", typ: tName}, {name: "aws_sigv4", typ: tScopes},
		{name: "allow", typ: tRequests},
		{name: "env", typ: tNames}, {name: "from_command", typ: tText}, {name: "from_env", typ: tName},
		{name: "from_file", typ: tPath}, {name: "store", typ: tEnum, words: Stores()},
		{name: "login", typ: tText}, {name: "login_fields", typ: tNames}, {name: "login_folder", typ: tName}}
}

// maxCredentials keeps the search for lines cheap.
const maxCredentials = 64

func (p *configParser) credentials(v any) error {
	p.layer.Credentials = map[string]Credential{}
	return p.tables("credential", maxCredentials, v, func(name, full string, line int, table map[string]any) error {
		c := Credential{Name: name, Origin: p.origin(line)}
		if err := p.named(full, table, credentialKeys(), into(c.field)); err != nil {
			return err
		}
		c.KnowLogin()
		if err := c.check(); err != nil {
			return p.errAt(line, "%s: %v", full, err)
		}
		p.layer.Credentials[name] = c
		return nil
	})
}

// check says what is wrong with a credential as a whole.
func (c *Credential) check() error {
	places, sources := 0, 0
	for _, s := range []string{c.Header, c.Basic, c.Query} {
		if s != "" {
			places++
		}
	}
	for _, s := range []string{c.FromCommand, c.FromEnv, c.FromFile} {
		if s != "" {
			sources++
		}
	}
	if c.Login != "" {
		if _, _, err := c.TokenEndpoint(); err != nil {
			return err
		}
	}
	name, format, ok := strings.Cut(c.Header, ":")
	switch {
	case places > 1:
		return errors.New("header, basic and query are three places: name one")
	case len(c.AWSSigV4) > 0 && (len(c.Hosts) == 0 || places > 0 || c.Kind != "" || len(c.Env) > 0):
		return errors.New("aws_sigv4 needs hosts; header, basic, query, kind and env do not go with it: " +
			"the key signs requests, and AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY hold its placeholders")
	case c.Store != "" && sources > 0:
		return errors.New("store says where a typed value is kept, and from_* where else it is: name one")
	case c.Store == Keyring && c.Login != "":
		return errors.New("what login issues is sealed in a file: store does not go with it")
	case sources > 1:
		return errors.New("from_command, from_env and from_file are three sources: name one")
	case c.Login != "" && (sources > 0 || len(c.Env) > 0 || c.Basic != "" || c.Query != "" || len(c.AWSSigV4) > 0):
		return errors.New("what login issues is the value, and stands in a header: " +
			"from_*, env, basic, query and aws_sigv4 do not go with it")
	case c.Login == "" && len(c.LoginFields) > 0:
		return errors.New("login_fields are of the answers of login, which names no address")
	case c.Login == "" && c.LoginFolder != "":
		return errors.New("login_folder is of the program that asks login, which names no address")
	case strings.ContainsAny(c.LoginFolder, ".-"):
		return fmt.Errorf("%s is not the name of a variable, as login_folder is", excerpt.Quote(c.LoginFolder))
	case c.Header != "" && (!ok || !isToken(name) || strings.Count(format, "{}") != 1 ||
		strings.ContainsFunc(format, func(r rune) bool { return r < ' ' || r > '~' })):
		return fmt.Errorf("%s is not like \"Authorization: Bearer {}\"", excerpt.Quote(c.Header))
	}
	return nil
}

// KnowLogin settles where a service that is known by its kind or name issues its tokens, if nothing is said of the
// value. Package credential knows the hosts of these.
func (c *Credential) KnowLogin() {
	if c.Login != "" || !c.Sealed() || c.Store != "" {
		return
	}
	switch cmp.Or(c.Kind, c.Name) {
	case "claude-login":
		c.Login = "https://platform.claude.com/v1/oauth/token"
	case "codex-login":
		c.Login = "https://auth.openai.com/oauth/token"
	case "github-login":
		c.Login = "https://github.com/login/oauth/access_token"
	}
}

// TokenEndpoint is the server and the path of a login.
func (c *Credential) TokenEndpoint() (server, path string, err error) {
	u, err := url.Parse(c.Login)
	if err == nil {
		err = CheckServer(u.Host)
	}
	if err != nil || u.Scheme != "https" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || len(u.Path) < 2 ||
		checkRequest("POST "+u.Path) != nil || strings.Contains(u.Path, "*") {
		return "", "", fmt.Errorf("%s is no address like \"https://auth.example/oauth/token\"", excerpt.Quote(c.Login))
	}
	return u.Host, u.Path, nil
}

// isToken says whether a text can be the name of a header (RFC 9110, 5.6.2).
func isToken(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return r <= ' ' || r > '~' || strings.ContainsRune("\"(),/:;<=>?@[\\]{}", r)
	})
}

// CheckServer says what is wrong with the name of one server, with or without a port.
func CheckServer(s string) error {
	name, port, has := strings.Cut(s, ":")
	h, err := peer.Parse(name)
	if err == nil && has {
		_, err = peer.ParsePort(port)
	}
	if err != nil || h.Name == "" || h.Name != name || strings.Contains(s, "*") {
		return fmt.Errorf("%s is not the name of one server, in small letters, with or without a port", excerpt.Quote(s))
	}
	return nil
}

// checkScope says what is wrong with what an access key may sign for.
func checkScope(s string) error {
	for part := range strings.SplitSeq(s, "/") {
		if part == "" || len(s) > 128 || strings.Count(s, "/") > 1 ||
			strings.Trim(part, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return fmt.Errorf("%s is not SERVICE or SERVICE/REGION, as in \"s3/eu-west-1\"", excerpt.Quote(s))
		}
	}
	return nil
}

// checkRequest says what is wrong with a rule about requests: "GET /repos/**".
func checkRequest(s string) error {
	method, path, _ := strings.Cut(s, " ")
	segments := strings.Split(path, "/")
	wild := slices.IndexFunc(segments, func(s string) bool { return strings.Contains(s, "*") && s != "*" })
	switch {
	case len(s) > 1024 || method != "*" && strings.Trim(method, "ABCDEFGHIJKLMNOPQRSTUVWXYZ-") != "" || method == "" ||
		!strings.HasPrefix(path, "/") || strings.ContainsAny(path, " ?#%"):
		return fmt.Errorf("%s is not METHOD /PATH, as in \"GET /repos/**\"", excerpt.Quote(s))
	case wild >= 0 && (segments[wild] != "**" || wild != len(segments)-1):
		return fmt.Errorf("%s: * is a whole segment, and ** stands at the end", excerpt.Quote(s))
	}
	return nil
}
