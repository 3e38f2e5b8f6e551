//go:build linux

package sshagent

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net"
	"strings"

	"sbx.example/sbx/broker/internal/relay"
)

// Mode says what the sandbox may do with the keys.
type Mode int

const (
	Sign    Mode = iota // log in and sign
	SignGit             // sign commits and tags, nothing else
)

// Request is one that was refused, or that is asked about.
type Request struct {
	PID     int    // of the process inside that asked, as the broker's PID namespace knows it; 0 if it is gone
	What    string // "sign a commit", "add a key", …
	Key     string // fingerprint, SHA256:…
	Comment string // the key's, as the agent gave it
	Summary string // first line of what is to be signed, if it is known to be that
	Signed  string // the hash of what is to be signed, as far as it tells texts apart
	Reason  string // why it was refused
}

// Options of a Proxy.
type Options struct {
	Agent *relay.Upstream // the agent's socket
	Mode  Mode            //
	Keys  []string        // fingerprints or comments of the keys that may be used; none means all
	// Ask is asked before every signature; nil signs without a question.
	Ask func(Request) bool
	// Refused is told what was refused. It may be nil.
	Refused func(Request)
	Door    *relay.Door // where the broker connects for those inside; may be nil
}

// Proxy serves one socket.
type Proxy struct {
	*relay.Server
	opt Options
}

// maxConns bounds the connections that are served at once; ssh opens one, git one for each signature.
const maxConns = 32

// New makes a proxy.
func New(opt Options) *Proxy {
	p := &Proxy{Server: relay.New(2 * maxConns), opt: opt}
	p.Door = opt.Door
	return p
}

// Serve answers what connects to l until l or the proxy is closed.
func (p *Proxy) Serve(l *net.UnixListener) { p.Accept(l, p.serve) }

// serve answers one client. Each has a connection of its own to the agent, which ends with it.
func (p *Proxy) serve(c *net.UnixConn) {
	agent, err := p.Dial(p.opt.Agent)
	s := &client{p: p, agent: agent, pid: p.PID(c)}
	if err != nil {
		s.refuse(Request{What: "connect", Reason: err.Error()})
		return
	}
	defer p.Leave(agent)
	for {
		m, err := readMessage(c)
		if err != nil {
			return
		}
		answer, err := s.answer(m)
		if err != nil { // the agent, not the client, is in trouble
			return
		}
		if writeMessage(c, answer) != nil {
			return
		}
	}
}

// client is one connection from inside.
type client struct {
	p     *Proxy
	agent net.Conn
	pid   int
}

var failure = [1]byte{msgFailure}

// answer carries one request out or refuses it.
func (s *client) answer(m []byte) ([]byte, error) {
	switch m[0] {
	case msgRequestIdentities:
		if len(m) != 1 {
			return s.refuse(Request{What: "list keys", Reason: errShape.Error()}), nil
		}
		ids, err := s.identities()
		if err != nil {
			return nil, err
		}
		return identitiesAnswer(ids), nil
	case msgSignRequest:
		return s.sign(m)
	case msgExtension:
		// Binds the connection to a session of ssh: it takes rights away and gives none.
		if name, _, ok := cutString(m[1:]); ok && string(name) == "session-bind@openssh.com" && s.p.opt.Mode == Sign {
			a, err := s.pass(m)
			if err != nil || len(a) != 1 { // success or failure, and no more than that
				return failure[:], err
			}
			return a, nil
		}
		return s.refuse(Request{What: "use an extension", Reason: "only session-bind@openssh.com is passed on"}), nil
	}
	return s.refuse(Request{What: requestName(m[0]), Reason: "the sandbox may use keys and not change the agent"}), nil
}

// requestName says what a request would do.
func requestName(t byte) string {
	switch t {
	case 17, 25:
		return "add a key"
	case 18:
		return "remove a key"
	case 19, 9:
		return "remove all keys"
	case 20, 26:
		return "add keys of a smart card"
	case 21:
		return "remove keys of a smart card"
	case 22:
		return "lock the agent"
	case 23:
		return "unlock the agent"
	}
	return fmt.Sprintf("send request %d", t)
}

func (s *client) refuse(r Request) []byte {
	r.PID = s.pid
	if s.p.opt.Refused != nil {
		s.p.opt.Refused(r)
	}
	return failure[:]
}

// pass hands a message to the agent and returns its answer.
func (s *client) pass(m []byte) ([]byte, error) {
	if err := writeMessage(s.agent, m); err != nil {
		return nil, err
	}
	return readMessage(s.agent)
}

// identities are the agent's keys less those that were not chosen.
func (s *client) identities() ([]identity, error) {
	m, err := s.pass([]byte{msgRequestIdentities})
	if err != nil {
		return nil, err
	}
	all, err := parseIdentities(m)
	if err != nil {
		return nil, nil // a locked agent answers with a failure: no keys
	}
	var out []identity
	for _, id := range all {
		if s.p.chosen(id) {
			out = append(out, id)
		}
	}
	return out, nil
}

func (p *Proxy) chosen(id identity) bool {
	if len(p.opt.Keys) == 0 {
		return true
	}
	for _, k := range p.opt.Keys {
		if k == fingerprint(id.key) || k == string(id.comment) {
			return true
		}
	}
	return false
}

// fingerprint names a public key as ssh-keygen -l does.
func fingerprint(key []byte) string {
	sum := sha256.Sum256(key)
	return "SHA256:" + strings.TrimRight(base64.StdEncoding.EncodeToString(sum[:]), "=")
}

// sign passes a request for a signature on if its key was chosen and it signs what the mode allows.
func (s *client) sign(m []byte) ([]byte, error) {
	req, err := parseSign(m)
	if err != nil {
		return s.refuse(Request{What: "sign", Reason: err.Error()}), nil
	}
	r := Request{PID: s.pid, What: "log in or sign", Key: fingerprint(req.key)}
	ids, err := s.identities()
	if err != nil {
		return nil, err
	}
	known := false
	for _, id := range ids {
		if string(id.key) == string(req.key) {
			known, r.Comment = true, string(id.comment)
		}
	}
	if !known { // also certificates and keys that are not listed
		r.Reason = "the key is not one of those that were chosen for this sandbox"
		return s.refuse(r), nil
	}
	sig, isFile := parseSSHSIG(req.data)
	if isFile {
		r.Signed = fmt.Sprintf("%s %.8x", sig.Hash, sig.Sum)
	}
	if isFile && sig.Namespace == "git" {
		r.What, r.Summary = "sign a commit or tag", s.summary(sig)
	} else if isFile {
		r.What = "sign a file for " + sig.Namespace
	}
	if s.p.opt.Mode == SignGit && (!isFile || sig.Namespace != "git") {
		r.Reason = "the agent was granted for signatures of git alone"
		return s.refuse(r), nil
	}
	if s.p.opt.Ask != nil && !s.p.opt.Ask(r) {
		r.Reason = "it was denied"
		return s.refuse(r), nil
	}
	a, err := s.pass(req.bytes())
	if err != nil {
		return nil, err
	}
	if a[0] != msgSignResponse {
		return failure[:], nil
	}
	return a, nil
}
