//go:build linux

package nixdaemon

import (
	"bytes"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sbx.example/sbx/broker/internal/relay"
)

// daemon speaks enough of the protocol to be asked, and writes down what it was sent.
type daemon struct {
	mu      sync.Mutex
	ops     []uint64
	options [][]byte
	missing []string // what would be built
	unknown []string
	sock    string
	version uint64
}

func newDaemon(t *testing.T) *daemon {
	d := &daemon{sock: filepath.Join(t.TempDir(), "daemon"), version: 1<<8 | 34}
	l, err := net.Listen("unix", d.sock)
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
			go d.serve(c)
		}
	}()
	return d
}

func (d *daemon) serve(c net.Conn) {
	defer c.Close()
	r := newReader(c)
	r.num()
	c.Write(appendNum(appendNum(nil, magicDaemon), d.version))
	version := min(r.num(), d.version)
	r.num()
	r.num()
	var hello []byte
	if version >= 1<<8|33 {
		hello = appendStr(hello, "2.8.0")
	}
	c.Write(appendNum(hello, stderrLast))
	for {
		r.take()
		op := r.num()
		if r.err != nil {
			return
		}
		answer := appendNum(nil, stderrLast)
		switch op {
		case opSetOptions:
			r.options()
		case opBuildPaths, opBuildWithResults:
			r.strs()
			r.num()
			answer = appendNum(answer, 1)
		case opQueryMissing:
			r.strs()
			d.mu.Lock()
			answer = appendStrs(appendStrs(appendStrs(answer, d.missing), nil), d.unknown)
			d.mu.Unlock()
			answer = appendNum(appendNum(answer, 0), 0)
		case opAddToStoreNar:
			r.imported()
			r.frames(io.Discard)
		case opAddMultiple:
			r.flag()
			r.flag()
			r.frames(io.Discard)
		default:
			r.fields(find(op).fields)
			answer = appendNum(answer, 1)
		}
		d.mu.Lock()
		d.ops = append(d.ops, op)
		if op == opSetOptions {
			d.options = append(d.options, r.take())
		}
		d.mu.Unlock()
		c.Write(answer)
	}
}

func (d *daemon) saw(op uint64) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Contains(d.ops, op)
}

// dialog is a client that has been greeted.
type dialog struct {
	net.Conn
	in *reader
	t  *testing.T
}

// hold is a socket as a door has it.
func hold(t *testing.T, socket string) *relay.Upstream {
	t.Helper()
	u, err := relay.Hold(socket)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func open(t *testing.T, opt Options) *dialog {
	t.Helper()
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
	d := &dialog{c, newReader(c), t}
	d.send(appendNum(nil, magicClient))
	if m, v := d.in.num(), d.in.num(); m != magicDaemon || v > newest {
		t.Fatalf("greeted with %x, version %x", m, v)
	}
	d.send(appendNum(appendNum(appendNum(nil, 1<<8|38), 0), 0))
	if v := d.in.str(); v != "2.8.0" {
		t.Fatalf("version %q", v)
	}
	if d.in.num() != stderrLast {
		t.Fatal("no welcome")
	}
	return d
}

func (d *dialog) send(b []byte) {
	d.t.Helper()
	if _, err := d.Write(b); err != nil {
		d.t.Fatal(err)
	}
}

// outcome reads until the operation is done: "" or the error's text. Warnings are collected.
func (d *dialog) outcome() (refused, warned string) {
	d.t.Helper()
	for {
		switch m := d.in.num(); {
		case d.in.err != nil:
			return "closed: " + d.in.err.Error(), warned
		case m == stderrLast:
			return "", warned
		case m == stderrNext:
			warned += d.in.str()
		case m == stderrError:
			d.in.str()
			d.in.num()
			d.in.str()
			text := d.in.str()
			d.in.num()
			d.in.num()
			return text, warned
		default:
			return "unexpected", warned
		}
	}
}

func setOptions(overrides ...[2]string) []byte {
	return (&options{keepFailed: 1, tryFallback: 1, maxJobs: 4000, substitute: 1, overrides: overrides}).bytes()
}

func TestOperations(t *testing.T) {
	str := func(n uint64, s ...string) []byte {
		b := appendNum(nil, n)
		for _, x := range s {
			b = appendStr(b, x)
		}
		return b
	}
	for _, tc := range []struct {
		name, want string
		op         uint64
		message    []byte
	}{
		{"look up", "", 26, str(26, "/nix/store/x")},
		{"keep", "", 11, str(11, "/nix/store/x")},
		{"collect garbage", "maintenance", 20, appendNum(nil, 20)},
		{"roots", "outside of the sandbox", 14, appendNum(nil, 14)},
		{"optimise", "maintenance", 34, appendNum(nil, 34)},
		{"verify", "maintenance", 35, appendNum(nil, 35)},
		{"a derivation of its own", "nobody has checked", 36, str(36, "/nix/store/x.drv")},
		{"sign", "genuine", 37, str(37, "/nix/store/x")},
		{"realisation", "nobody has checked", 42, str(42, "x")},
		{"log", "trusted users", 45, str(45, "x")},
		{"root", "trusted users", 47, str(47, "x")},
		{"import of old", "nobody has checked", 27, appendNum(nil, 27)},
		{"unknown", "does not know it", 48, appendNum(nil, 48)},
		{"unknown and large", "does not know it", 1 << 60, appendNum(nil, 1<<60)},
		{"repair by building", "maintenance", opBuildPaths, appendNum(appendStrs(appendNum(nil, opBuildPaths),
			[]string{"/nix/store/x.drv!out"}), 1)},
		{"repair by adding", "maintenance", opAddToStore, appendNum(appendStrs(str(opAddToStore, "x", "text:sha256"), nil),
			1)},
		{"made by a derivation", "made by other ones", opBuildPaths, appendNum(appendStrs(appendNum(nil, opBuildPaths),
			[]string{"/nix/store/x.drv^out^out"}), 0)},
		{"dirty padding", "form", 26, append(appendNum(appendNum(nil, 26), 1), "x1234567"...)},
		{"flag of 2", "form", opAddMultiple, appendNum(appendNum(nil, opAddMultiple), 2)},
		{"long string", "too long", 26, appendNum(appendNum(nil, 26), 1<<40)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			up := newDaemon(t)
			var refused []Request
			c := open(t, Options{Daemon: hold(t, up.sock), Store: "/nix/store", Refused: func(r Request) {
				refused = append(refused,
					r)
			}})
			c.send(setOptions())
			if e, _ := c.outcome(); e != "" {
				t.Fatal(e)
			}
			c.send(tc.message)
			got, _ := c.outcome()
			if tc.want == "" && (got != "" || !up.saw(tc.op)) {
				t.Errorf("refused: %s", got)
			}
			if tc.want != "" && (!strings.Contains(got, tc.want) || up.saw(tc.op) || len(refused) != 1 ||
				refused[0].PID != os.Getpid()) {
				t.Errorf("answer %q, want %q; the daemon saw it: %t; refused %+v", got, tc.want, up.saw(tc.op), refused)
			}
		})
	}
}

func TestOptionsAreReduced(t *testing.T) {
	host := map[string]string{"substituters": "https://mine.example", "post-build-hook": "/host/hook"}
	for _, tc := range []struct {
		network    bool
		name, val  string
		kept, said bool
	}{
		{false, "timeout", "9", true, false},
		{false, "post-build-hook", "/evil", false, true},
		{false, "post-build-hook", "/host/hook", false, false}, // every client sends what nix.conf has
		{false, "builders", "ssh://evil", false, true},
		{true, "builders", "ssh://evil", false, true},
		{false, "substituters", "https://mine.example/", false, false},
		{true, "substituters", "https://mine.example/ " + builtinSubstituter, true, false},
		{true, "substituters", "https://mine.example https://evil.example", false, true},
		{true, "extra-substituters", "https://evil.example", false, true},
		{true, "trusted-public-keys", "evil:key", false, true},
		{false, "sandbox", "false", false, true},
		{false, "diff-hook", "/evil", false, true},
		{false, "plugin-files", "/evil", false, true},
		{false, "anything-of-tomorrow", "1", false, true},
		{false, "experimental-features", "flakes", false, false},
		{true, "connect-timeout", "1", false, false},
	} {
		up := newDaemon(t)
		c := open(t, Options{Daemon: hold(t, up.sock), Store: "/nix/store", Network: tc.network, Host: host})
		c.send(setOptions([2]string{tc.name, tc.val}))
		e, warned := c.outcome()
		if e != "" {
			t.Fatal(e)
		}
		up.mu.Lock()
		o := newReader(bytes.NewReader(up.options[0][8:])).options()
		up.mu.Unlock()
		kept := slices.Contains(o.overrides, [2]string{tc.name, tc.val})
		if kept != tc.kept || strings.Contains(warned, "'"+tc.name+"'") != tc.said {
			t.Errorf("%s=%s with network %t: kept %t, said %q", tc.name, tc.val, tc.network, kept, warned)
		}
		if o.keepFailed != 0 || o.tryFallback != 0 || o.maxJobs > 1024 || (o.substitute == 1) != tc.network ||
			tc.network == slices.Contains(o.overrides, [2]string{"builders", ""}) {
			t.Errorf("options %+v with network %t", o, tc.network)
		}
	}
}

// What an earlier message has set holds on; who asks for the client what would be built must have set the same.
func TestOptionsAddUp(t *testing.T) {
	up := newDaemon(t)
	c := open(t, Options{Daemon: hold(t, up.sock), Store: t.TempDir(), Network: true})
	for _, o := range [][]byte{setOptions([2]string{"substituters", ""}), setOptions()} {
		c.send(o)
		c.outcome()
	}
	c.send(appendNum(appendStrs(appendNum(nil, opBuildPaths), []string{"/s/x.drv!out"}), 0))
	c.outcome()
	up.mu.Lock()
	defer up.mu.Unlock()
	if len(up.options) != 4 || !bytes.Equal(up.options[0], up.options[2]) || !bytes.Equal(up.options[1], up.options[3]) {
		t.Errorf("the client set %x; in its name was set %x", up.options[:2], up.options[2:])
	}
	for range maxOptions {
		c.Write(setOptions())
	}
	for i := 0; ; i++ {
		if e, _ := c.outcome(); e != "" {
			break
		}
		if i > maxOptions {
			t.Fatal("options without end")
		}
	}
}

func TestOptionsComeFirst(t *testing.T) {
	up := newDaemon(t)
	c := open(t, Options{Daemon: hold(t, up.sock), Store: "/nix/store"})
	c.send(appendStr(appendNum(nil, 10), "/nix/store/x"))
	if e, _ := c.outcome(); !strings.Contains(e, "must set options") || up.saw(10) {
		t.Errorf("answer %q", e)
	}
}

func TestBuilds(t *testing.T) {
	store := t.TempDir()
	plain := `Derive([("out","/s/p","","")],[("/s/in.drv",["out"])],[],"x","/bin/sh",[],[("name","p")])`
	for name, text := range map[string]string{
		"plain.drv":     plain,
		"fixed.drv":     `Derive([("out","/s/f","r:sha256","00ff")],[],[],"x","/bin/sh",[],[])`,
		"second.drv":    `Derive([("a","/s/a","",""),("out","","r:sha256","impure")],[],[],"x","/bin/sh",[],[])`,
		"floating.drv":  `Derive([("out","","r:sha256","")],[],[],"x","/bin/sh",[],[])`,
		"free.drv":      strings.Replace(plain, `("name","p")`, `("__noChroot","1")`, 1),
		"recursive.drv": strings.Replace(plain, `("name","p")`, `("requiredSystemFeatures","recursive-nix")`, 1),
		// Nix reads names after it has taken escapes away, of JSON's too.
		"escaped.drv":    strings.Replace(plain, `("name","p")`, `("_\_noChroot","1")`, 1),
		"json.drv":       strings.Replace(plain, `("name","p")`, `("__json","{\"\\u005f\\u005fnoChroot\":true}")`, 1),
		"twice.drv":      strings.Replace(plain, `("name","p")`, `("__json","{\"a\":{\"b\":[\"recursive-\\u006eix\"]}}")`, 1),
		"structured.drv": strings.Replace(plain, `("name","p")`, `("__json","{\"name\":\"p\",\"n\":1e400}")`, 1),
		"torn.drv":       strings.Replace(plain, `("name","p")`, `("__json","{\"name\":")`, 1),
		"more.drv":       plain + `,("__noChroot","1")`,
		"odd.drv":        "DrvWithVersion(\"xp-dyn-drv\",[])",
	} {
		if err := os.WriteFile(filepath.Join(store, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("plain.drv", filepath.Join(store, "link.drv")); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		missing, want string
		unknown       bool
		network       bool
		fetch         bool
	}{
		{missing: "plain.drv"}, {missing: "floating.drv"},
		{missing: "fixed.drv", want: "would use the network"}, {missing: "second.drv", want: "would use the network"},
		{missing: "free.drv", want: "would use the network"}, {missing: "recursive.drv", want: "would use the network"},
		{missing: "escaped.drv", want: "would use the network"}, {missing: "json.drv", want: "would use the network"},
		{missing: "twice.drv", want: "would use the network"}, {missing: "structured.drv"},
		{missing: "torn.drv", want: "reading the derivation"}, {missing: "more.drv", want: "form of a derivation"},
		{missing: "odd.drv", want: "form of a derivation"}, {missing: "link.drv", want: "reading the derivation"},
		{missing: "none.drv", want: "no such file"},
		{missing: "plain.drv", unknown: true, want: "is not in the store"},
		{missing: "fixed.drv", network: true, want: "would use the network"}, {missing: "fixed.drv", network: true,
			fetch: true}, {missing: "fixed.drv", fetch: true, want: "would use the network"},
	} {
		up := newDaemon(t)
		up.missing = []string{filepath.Join(store, tc.missing)}
		if tc.unknown {
			up.unknown = []string{"/s/late.drv"}
		}
		c := open(t, Options{Daemon: hold(t, up.sock), Store: store, Network: tc.network, Fetch: tc.fetch})
		c.send(setOptions())
		c.outcome()
		for _, op := range []uint64{opBuildPaths, opBuildWithResults} {
			c.send(appendNum(appendStrs(appendNum(nil, op), []string{filepath.Join(store, "plain.drv") + "!out"}), 0))
			e, _ := c.outcome()
			if e == "" {
				c.in.num()
			}
			if tc.want == "" && (e != "" || !up.saw(op)) || tc.want != "" && (!strings.Contains(e, tc.want) || up.saw(op)) {
				t.Errorf("%+v: %q, the daemon saw it: %t", tc, e, up.saw(op))
			}
		}
		// To build again what is there is to build it.
		c.send(appendNum(appendStrs(appendNum(nil, opBuildPaths), []string{filepath.Join(store, "fixed.drv") + "!out"}), 2))
		if e, _ := c.outcome(); (e == "") != (tc.network && tc.fetch) {
			t.Errorf("%+v: built again: %q", tc, e)
		}
	}
}

func TestImportsAreChecked(t *testing.T) {
	up := newDaemon(t)
	c := open(t, Options{Daemon: hold(t, up.sock), Store: "/nix/store", Network: true})
	b := appendNum(nil, opAddToStoreNar)
	for _, s := range []string{"/nix/store/x", "", "sha256:0"} {
		b = appendStr(b, s)
	}
	b = appendNum(appendNum(appendStrs(b, nil), 1), 8)
	b = appendStrs(appendNum(b, 1), []string{"key:sig"}) // built here
	b = appendNum(appendNum(appendStr(b, ""), 1), 1)     // repair, without signatures
	got := newReader(bytes.NewReader(b))
	got.num()
	out := got.imported()
	if got.err != nil || len(out) != len(b) || bytes.Equal(out, b) || !bytes.Equal(out[len(out)-16:], make([]byte, 16)) {
		t.Errorf("%x became %x: %v", b, out, got.err)
	}
	c.send(append(b, append(appendNum(nil, 3), "abc\x00\x00\x00\x00\x00\x00\x00\x00"...)...))
	if e, _ := c.outcome(); e != "" || !up.saw(opAddToStoreNar) {
		t.Errorf("import: %q", e)
	}
}

func TestOldAndWrongPeers(t *testing.T) {
	up := newDaemon(t)
	up.version = 1<<8 | 21
	p := New(Options{Daemon: hold(t, up.sock)})
	a, b := net.Pipe()
	defer a.Close()
	s := &client{p: p, in: newReader(b), conn: b}
	d, err := p.Dial(p.opt.Daemon)
	if err != nil {
		t.Fatal(err)
	}
	s.daemon = d
	go func() {
		a.Write(appendNum(nil, magicClient))
		io.ReadFull(a, make([]byte, 16))
		a.Write(appendNum(nil, 1<<8|37))
		io.Copy(io.Discard, a)
	}()
	if err := s.handshake(); err != errShape {
		t.Errorf("an old daemon: %v", err)
	}
	s = &client{p: p, in: newReader(strings.NewReader("GET / HTTP/1.1\r\n\r\n")), conn: b, daemon: d}
	if err := s.handshake(); err != errShape {
		t.Errorf("another protocol: %v", err)
	}
}

func FuzzClient(f *testing.F) {
	f.Add(setOptions([2]string{"post-build-hook", "/x"}))
	f.Add(appendStr(appendNum(nil, 26), "/nix/store/x"))
	f.Add(appendNum(appendStrs(appendNum(nil, opBuildPaths), []string{"/nix/store/x.drv!out"}), 0))
	socket := filepath.Join(f.TempDir(), "daemon")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		f.Fatal(err)
	}
	dead, err := relay.Hold(socket)
	if err != nil {
		f.Fatal(err)
	}
	l.Close()
	f.Fuzz(func(t *testing.T, b []byte) {
		// Whatever comes, what reaches the daemon is one of the operations that are passed on, whole, and reads as what the
		// filter took it for.
		var sent bytes.Buffer
		p := New(Options{Daemon: dead, Store: "/nonexistent"})
		s := &client{p: p, in: newReader(bytes.NewReader(b)), conn: discard{}, daemon: &kept{to: &sent}, version: newest}
		for {
			s.in.take()
			op := s.in.num()
			if s.in.err != nil {
				break
			}
			before := sent.Len()
			if err := s.pass(op); err != nil {
				break
			}
			if sent.Len() == before {
				continue
			}
			r := newReader(bytes.NewReader(sent.Bytes()[before:]))
			row := find(r.num())
			if row == nil || row.refuse != "" || row.number != op {
				t.Fatalf("operation %d was passed on as %+v", op, row)
			}
			if op == opSetOptions {
				if o := r.options(); r.err != nil || o.substitute != 0 || o.keepFailed != 0 {
					t.Fatalf("options %+v, %v", o, r.err)
				}
			}
		}
		parseDerivation(b)
	})
}

type discard struct{ net.Conn }

func (discard) Write(b []byte) (int, error) { return len(b), nil }

type kept struct {
	net.Conn
	to io.Writer
}

func (k *kept) Write(b []byte) (int, error) { return k.to.Write(b) }
