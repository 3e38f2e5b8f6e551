//go:build linux

package sshagent

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"sbx.example/sbx/broker/internal/relay"
)

// upstream is an agent with two keys that signs everything and writes down what it was asked.
type upstream struct {
	mu   sync.Mutex
	seen []byte
	sock string
}

var keyA, keyB = [...]byte{0, 0, 0, 1, 'a'}, [...]byte{0, 0, 0, 1, 'b'}

func newUpstream(t *testing.T) *upstream {
	u := &upstream{sock: filepath.Join(t.TempDir(), "agent")}
	l, err := net.Listen("unix", u.sock)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				for {
					m, err := readMessage(c)
					if err != nil {
						return
					}
					u.mu.Lock()
					u.seen = append(u.seen, m[0])
					u.mu.Unlock()
					answer := []byte{6}
					switch m[0] {
					case msgRequestIdentities:
						answer = identitiesAnswer([]identity{{keyA[:], []byte("work")}, {keyB[:], []byte("home")}})
					case msgSignRequest:
						answer = appendString([]byte{msgSignResponse}, []byte("signature"))
					}
					writeMessage(c, answer)
				}
			}()
		}
	}()
	return u
}

func (u *upstream) asked(t byte) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return bytes.IndexByte(u.seen, t) >= 0
}

// open starts a proxy and connects to it.
// hold is a socket as a door has it.
func hold(t *testing.T, socket string) *relay.Upstream {
	t.Helper()
	u, err := relay.Hold(socket)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func open(t *testing.T, opt Options) net.Conn {
	p := New(opt)
	sock := filepath.Join(t.TempDir(), "proxy")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: sock, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	go p.Serve(l)
	c, err := net.Dial("unix", sock)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(); l.Close() })
	c.SetDeadline(time.Now().Add(time.Minute))
	return c
}

func call(t *testing.T, c net.Conn, m []byte) []byte {
	t.Helper()
	if err := writeMessage(c, m); err != nil {
		t.Fatal(err)
	}
	a, err := readMessage(c)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func sshsig(namespace, text string) []byte {
	sum := sha256.Sum256([]byte(text))
	b := appendString([]byte("SSHSIG"), []byte(namespace))
	b = appendString(b, nil)
	return appendString(appendString(b, []byte("sha256")), sum[:])
}

func TestFilter(t *testing.T) {
	sign := func(key, data []byte) []byte { return signRequest{key, data, 0}.bytes() }
	for _, tc := range []struct {
		name    string
		mode    Mode
		keys    []string
		message []byte
		want    byte
		reason  string // of the refusal
	}{
		{"login with a chosen key", Sign, []string{"work"}, sign(keyA[:], []byte("login")), msgSignResponse, ""},
		{"login with a key chosen by fingerprint", Sign, []string{fingerprint(keyA[:])}, sign(keyA[:], []byte("login")),
			msgSignResponse, ""},
		{"login with another key", Sign, []string{"work"}, sign(keyB[:], []byte("login")), msgFailure, "not one of those"},
		{"login with a key that the agent does not have", Sign, nil, sign([]byte("zzz"), []byte("login")), msgFailure,
			"not one of those"},
		{"commit", SignGit, nil, sign(keyA[:], sshsig("git", "x")), msgSignResponse, ""},
		{"login where git alone is granted", SignGit, nil, sign(keyA[:], []byte("login")), msgFailure, "git alone"},
		{"file where git alone is granted", SignGit, nil, sign(keyA[:], sshsig("file", "x")), msgFailure, "git alone"},
		{"login that begins like a signed file", SignGit, nil, sign(keyA[:], []byte("SSHSIG\x00\x00\x00\x03git")),
			msgFailure, "git alone"},
		{"signed file with more after it", SignGit, nil, sign(keyA[:], append(sshsig("git", "x"), 0)), msgFailure,
			"git alone"},
		{"add", Sign, nil, []byte{17, 1}, msgFailure, "not change the agent"},
		{"remove", Sign, nil, []byte{18, 1}, msgFailure, "not change the agent"},
		{"remove all", Sign, nil, []byte{19}, msgFailure, "not change the agent"},
		{"lock", Sign, nil, []byte{22, 0}, msgFailure, "not change the agent"},
		{"unlock", Sign, nil, []byte{23, 0}, msgFailure, "not change the agent"},
		{"smart card", Sign, nil, []byte{20, 0}, msgFailure, "not change the agent"},
		{"unknown", Sign, nil, []byte{200}, msgFailure, "not change the agent"},
		{"truncated signature", Sign, nil, []byte{msgSignRequest, 0, 0, 0, 9}, msgFailure, "form"},
		{"extension", Sign, nil, append([]byte{msgExtension}, appendString(nil, []byte("query"))...), msgFailure,
			"session-bind"},
		{"session-bind", Sign, nil, append([]byte{msgExtension}, appendString(nil, []byte("session-bind@openssh.com"))...),
			6, ""},
		{"session-bind where git alone is granted", SignGit, nil, append([]byte{msgExtension}, appendString(nil,
			[]byte("session-bind@openssh.com"))...), msgFailure, "session-bind"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			u := newUpstream(t)
			var refused []Request
			c := open(t, Options{Agent: hold(t, u.sock), Mode: tc.mode, Keys: tc.keys,
				Refused: func(r Request) { refused = append(refused, r) }})
			if a := call(t, c, tc.message); a[0] != tc.want {
				t.Errorf("answer %d, want %d", a[0], tc.want)
			}
			switch {
			case tc.reason == "" && len(refused) > 0:
				t.Errorf("refused: %+v", refused)
			case tc.reason != "" && (len(refused) != 1 || !strings.Contains(refused[0].Reason, tc.reason) ||
				refused[0].PID != os.Getpid()):
				t.Errorf("refused %+v, want one for %q", refused, tc.reason)
			}
			if tc.want == msgFailure && u.asked(tc.message[0]) {
				t.Error("the agent saw the refused request")
			}
		})
	}
}

func TestListing(t *testing.T) {
	u := newUpstream(t)
	c := open(t, Options{Agent: hold(t, u.sock), Keys: []string{"home"}})
	ids, err := parseIdentities(call(t, c, []byte{msgRequestIdentities}))
	if err != nil || len(ids) != 1 || string(ids[0].comment) != "home" {
		t.Errorf("listed %v, %v", ids, err)
	}
}

func TestAskedWithSubject(t *testing.T) {
	u := newUpstream(t)
	commit := "tree 0\nauthor a\n\nmend the roof\n\nIt rained.\n"
	var asked Request
	answer := false
	c := open(t, Options{Agent: hold(t, u.sock), Mode: SignGit, Ask: func(r Request) bool { asked = r; return answer }})
	m := signRequest{keyA[:], sshsig("git", commit), 0}.bytes()
	if a := call(t, c, m); a[0] != msgFailure || u.asked(msgSignRequest) {
		t.Error("signed although it was denied")
	}
	if asked.Summary != "" { // this program's last argument is no commit
		t.Errorf("subject %q out of nowhere", asked.Summary)
	}
	answer = true
	if a := call(t, c, m); a[0] != msgSignResponse {
		t.Error("not signed although it was allowed")
	}
	// A process whose last argument names the commit, as ssh-keygen's does.
	file := filepath.Join(t.TempDir(), "buffer")
	if err := os.WriteFile(file, []byte(commit), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sleep", "60", "--", file)
	cmd.Args = []string{"sh", "-c", "sleep 60; :", file}
	cmd.Path = "/bin/sh"
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Kill()
	s := &client{pid: cmd.Process.Pid}
	cmdline := "/proc/" + strconv.Itoa(s.pid) + "/cmdline"
	// The kernel lets the parent of an exec go on before the arguments are in place.
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if b, _ := os.ReadFile(cmdline); len(b) > 0 {
			break
		}
	}
	sig, ok := parseSSHSIG(sshsig("git", commit))
	if got := s.summary(sig); !ok || got != "mend the roof" {
		t.Errorf("subject %q", got)
	}
	sig, _ = parseSSHSIG(sshsig("git", commit+"and more"))
	if got := s.summary(sig); got != "" {
		t.Errorf("subject %q of another commit", got)
	}
}

func TestHostileClients(t *testing.T) {
	u := newUpstream(t)
	for _, raw := range [][]byte{{0, 0, 0, 0}, {0xff, 0xff, 0xff, 0xff}, {0, 4, 0, 1}, {0, 0}} {
		c := open(t, Options{Agent: hold(t, u.sock)})
		c.Write(raw)
		c.(*net.UnixConn).CloseWrite()
		if a, err := readMessage(c); err == nil {
			t.Errorf("%v was answered with %v", raw, a)
		}
	}
	// The next client is served as if nothing had been.
	c := open(t, Options{Agent: hold(t, u.sock)})
	if a := call(t, c, []byte{msgRequestIdentities}); a[0] != msgIdentitiesAnswer {
		t.Error("not served after hostile clients")
	}
}

func FuzzMessages(f *testing.F) {
	f.Add(signRequest{keyA[:], sshsig("git", "x"), 1}.bytes())
	f.Add(identitiesAnswer([]identity{{keyA[:], []byte("work")}}))
	f.Fuzz(func(t *testing.T, m []byte) {
		if len(m) == 0 {
			return
		}
		if r, err := parseSign(m); err == nil {
			if b := r.bytes(); !bytes.Equal(b[1:], m[1:]) {
				t.Errorf("signature request %x became %x", m, b)
			}
			if s, ok := parseSSHSIG(r.data); ok && !slices.Contains([]string{"sha256", "sha512"}, s.Hash) {
				t.Errorf("hash %q", s.Hash)
			}
		}
		if ids, err := parseIdentities(m); err == nil {
			if b := identitiesAnswer(ids); !bytes.Equal(b, m) || binary.BigEndian.Uint32(b[1:]) != uint32(len(ids)) {
				t.Errorf("identities %x became %x", m, b)
			}
		}
	})
}
