//go:build linux

package selftest

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/selftest/need"
)

// consent is a session whose questions this test answers, and the processes in it.
type consent struct {
	t       *testing.T
	m       *fileProject
	engine  string
	session *exec.Cmd
	inside  io.WriteCloser
	results chan string // "ID WORD"
	asked   chan asked
	socket  io.WriteCloser
	next    int
	no      int // answers in a row that were no
	dummy   int
}

// asked is a question as the session's socket tells it.
type asked struct {
	Type  string   `json:"type"`
	ID    string   `json:"id"`
	Op    string   `json:"op"`
	Path  string   `json:"path"`
	Paths []string `json:"paths"`
	Exe   string   `json:"exe"`
	PID   int      `json:"pid"`
}

func (q asked) objects() []string {
	if len(q.Paths) == 0 {
		return []string{q.Path}
	}
	var out []string
	for _, p := range q.Paths {
		out = append(out, strings.TrimSuffix(p, "/"))
	}
	return out
}

// startConsent begins a session and joins its socket.
func startConsent(t *testing.T, m *fileProject, engine, name, prompt string) *consent {
	t.Helper()
	c := &consent{t: t, m: m, engine: engine, results: make(chan string, 64), asked: make(chan asked, 64)}
	c.session = m.command(m.project, shop.sbx, "run", "-q", "--mode", "dynamic", "--gate", engine, "--prompt", prompt,
		"--name", name, "--", "python3", "consent.py", "inside")
	in, err := c.session.StdinPipe()
	must(t, err)
	c.inside = in
	out, err := c.session.StdoutPipe()
	must(t, err)
	c.session.Stderr = os.Stderr
	must(t, c.session.Start())
	go func() {
		for s := bufio.NewScanner(out); s.Scan(); {
			c.results <- s.Text()
		}
		close(c.results)
	}()
	if got := <-c.results; got != "ready ok" {
		t.Fatalf("the session did not begin: %q", got)
	}
	if prompt != "socket" {
		t.Cleanup(func() { _ = c.session.Process.Kill() })
		return c
	}
	relay := m.command(filepath.Join(m.home, ".local/state/sbx/run", name),
		"/usr/bin/env", "python3", m.project+"/consent.py", "relay")
	if c.socket, err = relay.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	said, err := relay.StdoutPipe()
	must(t, err)
	relay.Stderr = os.Stderr
	must(t, relay.Start())
	go c.listen(said)
	t.Cleanup(func() {
		_ = c.session.Process.Kill()
		_ = relay.Process.Kill()
		_ = relay.Wait()
	})
	return c
}

func (c *consent) listen(said io.Reader) {
	defer close(c.asked)
	s := bufio.NewScanner(said)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		var q asked
		if json.Unmarshal(s.Bytes(), &q) == nil && (q.Type == "event.fs_request" || q.Type == "error") {
			c.asked <- q
		}
	}
}

// begin has a process of its own do something, and names the result to come.
func (c *consent) begin(worker, op, p string) (id string) {
	c.t.Helper()
	c.next++
	id = fmt.Sprint(c.next)
	if _, err := fmt.Fprintf(c.inside, "%s %s %s %s\n", id, worker, op, p); err != nil {
		c.t.Fatal(err)
	}
	return id
}

// answer answers a question. After many a no in a row nothing would be asked any more, so one is asked to be allowed.
func (c *consent) answer(q asked, key consentKey) {
	c.t.Helper()
	line := `{"type":"cmd.deny","id":"` + q.ID + `"`
	if c.no++; key.allow {
		line, c.no = `{"type":"cmd.approve","id":"`+q.ID+`"`, 0
	}
	if _, err := fmt.Fprintln(c.socket, line+key.members+"}"); err != nil {
		c.t.Fatal(err)
	}
}

// question waits for the next one.
func (c *consent) question() asked {
	c.t.Helper()
	select {
	case q, ok := <-c.asked:
		if !ok || q.Type == "error" {
			c.t.Fatalf("the session's socket: %+v", q)
		}
		return q
	case got := <-c.results:
		c.t.Fatalf("no question came, but %q", got)
	case <-time.After(time.Minute):
		c.t.Fatal("no question came")
	}
	return asked{}
}

// result waits for what has begun, and answers no to all that is asked meanwhile.
func (c *consent) result(id string) (word string, questions int) {
	c.t.Helper()
	for timeout := time.After(time.Minute); ; {
		select {
		case got, ok := <-c.results:
			if rest, mine := strings.CutPrefix(got, id+" "); mine {
				return rest, questions
			}
			c.t.Fatalf("%q instead of %s (%t)", got, id, ok)
		case q, ok := <-c.asked:
			if !ok || q.Type == "error" {
				c.t.Fatalf("the session's socket: %+v", q)
			}
			questions++
			c.answer(q, consentKey{})
		case <-timeout:
			c.t.Fatalf("%s came to no end", id)
		}
	}
}

// probe has a new process try something, and says whether it could without anybody's yes.
func (c *consent) probe(op, p string) (open bool, questions int) {
	c.t.Helper()
	if c.no > 15 {
		c.dummy++
		id := c.begin("d", "read", filepath.Join(c.m.home, "r", "dummy", fmt.Sprint(c.dummy)))
		c.answer(c.question(), consentKey{allow: true})
		if word, _ := c.result(id); word != "ok" {
			c.t.Fatal("a yes was a no: " + word)
		}
		c.begin("d", "end", "-")
	}
	id := c.begin("p", op, p)
	word, questions := c.result(id)
	c.begin("p", "end", "-")
	return word == "ok", questions
}

// consentKey is an answer as a key or a program gives it.
type consentKey struct {
	name    string
	allow   bool
	members string // of the line that answers
	reach   byte   // 0: what waits alone; f, d, t
	lasts   string // "", session, until, forever
}

var consentKeys = []consentKey{
	{"o", true, ``, 0, ""}, {"s", true, `,"scope":"file"`, 'f', "session"},
	{"h", true, `,"scope":"file","life":"1h"`, 'f', "until"},
	{"f", true, `,"scope":"file","life":"forever"`, 'f', "forever"},
	{"ds", true, `,"scope":"dir"`, 'd', "session"}, {"df", true, `,"scope":"dir","life":"forever"`, 'd', "forever"},
	{"ts", true, `,"scope":"tree"`, 't', "session"}, {"tf", true, `,"scope":"tree","life":"forever"`, 't', "forever"},
	{"n", false, ``, 0, ""}, {"v", false, `,"scope":"file","life":"forever"`, 'f', "forever"},
	{"dn", false, `,"scope":"dir","life":"session"`, 'd', "session"},
	{"tv", false, `,"scope":"tree","life":"forever"`, 't', "forever"},
}

// mergedKeys are answered to a question about several without SBX_THOROUGH=1: a yes and a no of each reach.
var mergedKeys = []string{"o", "f", "n", "v", "ds", "dn", "ts", "tv"}

// consentRow is one answer to one question, about things of a directory of its own.
type consentRow struct {
	number int
	op     string
	merged bool
	key    consentKey
	dir    string
	right  string // that the question names
	engine string
}

var consentRights = map[string]string{"list": "list", "read": "read", "stat": "read",
	"write": "write", "create": "write",
	"exec": "exec", "connect": "connect"}

func (q asked) right() string { return consentRights[q.Op] }

// askedRight is what an operation is asked about as: before a program is run its attributes are read.
func askedRight(engine, op string) string {
	if engine == "gatefs" && op == "exec" {
		return "read"
	}
	return consentRights[op]
}

// brings is what an answer about a right is good for.
func brings(right string) string {
	switch right {
	case "read":
		return "list read stat exec"
	case "write":
		return "list read stat exec write create"
	}
	return right
}

func (r consentRow) objects() []string {
	if r.op == "connect" && r.engine == "gatefs" { // the first look at one deeper in a home cannot wait for an answer
		return []string{path.Dir(path.Dir(r.dir)) + "/k" + path.Base(r.dir)}
	}
	name := map[string]string{"list": "l", "create": "n", "connect": "k"}[r.op]
	if name == "" {
		name = "a"
	}
	n := 1
	if r.merged {
		n = 6
	}
	var out []string
	for i := range n {
		out = append(out, fmt.Sprintf("%s/%s%d", r.dir, name, i))
	}
	return out
}

func (r consentRow) container() string {
	if r.op == "list" && !r.merged {
		return r.objects()[0]
	}
	return r.dir
}

// reached says what the answer is about, in the words of a person who has read the key.
func (r consentRow) reached(p string) bool {
	if r.key.reach != 0 && slices.Contains(r.objects(), p) {
		return true
	}
	switch r.key.reach {
	case 'd':
		return path.Dir(p) == r.container()
	case 't':
		return p == r.container() || strings.HasPrefix(p, r.container()+"/")
	}
	return false
}

// consentProbe is something that a process could do.
type consentProbe struct{ op, path string }

// probes are what is tried after the answer. Without SBX_THOROUGH=1 it is what was asked about, and every second of the
// rest in turn.
func (r consentRow) probes() []consentProbe {
	d, first := r.dir, r.objects()[0]
	out := []consentProbe{{"read", d + "/a0"}, {"read", d + "/o"}, {"stat", d + "/o"},
		{"read", d + "/s/x"}, {"read", d + "/s/t/y"}, {"read", d + "n/z"},
		{"list", d}, {"list", d + "/s"}, {"list", d + "/s/t"}, {"list", d + "/l0"}, {"list", d + "n"},
		{"write", d + "/a0"}, {"write", d + "/o"}, {"write", d + "/s/x"},
		{"exec", d + "/o"}, {"connect", d + "n/k"}, {"connect", d + "/k7"}}
	if again := (consentProbe{r.op, first}); r.op != "create" && !slices.Contains(out, again) {
		out = append(out, again)
	}
	if need.Thorough() {
		return out
	}
	var tried []consentProbe
	for i, p := range out {
		if p.path == first || p.path == r.container() || (i+r.number+r.number/len(consentKeys))%2 == 0 {
			tried = append(tried, p)
		}
	}
	return tried
}

// open says whether something is to be open to every process afterwards.
func (r consentRow) open(p consentProbe) bool {
	if r.mounts() && slices.Contains(r.objects(), p.path) {
		return p.op == r.op || r.op == "exec" && p.op == "read"
	}
	return r.key.allow && r.reached(p.path) && slices.Contains(strings.Fields(brings(r.right)), p.op)
}

// mounts says whether what waited is mounted, if only for a moment, and so every program's, as the question says.
func (r consentRow) mounts() bool {
	return r.key.allow && (r.engine == "notify" && r.right == "exec" || r.engine == "gatefs" && r.right == "connect")
}

func (r consentRow) String() string {
	return fmt.Sprintf("%s, merged %t, key %s", r.op, r.merged, r.key.name)
}

// make makes the row's things on the host, with sockets that listen.
func (r consentRow) make(t *testing.T) {
	t.Helper()
	dirs, files := []string{"/s/t", "n", "/l0/s"}, []string{"/a0", "/o", "/s/x", "/s/t/y", "n/z", "/l0/a", "/l0/s/b"}
	for _, p := range r.objects() {
		switch r.op {
		case "list":
			dirs = append(dirs, strings.TrimPrefix(p, r.dir))
		case "read", "stat", "write", "exec":
			files = append(files, strings.TrimPrefix(p, r.dir))
		}
	}
	for _, d := range dirs {
		must(t, os.MkdirAll(r.dir+d, 0o755))
	}
	echo, err := os.ReadFile("/bin/echo")
	must(t, err)
	for _, f := range files {
		text := []byte("text")
		if f == "/o" || r.op == "exec" { // which are run
			text = echo
		}
		must(t, os.WriteFile(r.dir+f, text, 0o755))
	}
	sockets := []string{r.dir + "n/k"}
	if r.op == "connect" || r.op == "read" { // no tree that holds a socket is granted for writing
		sockets = append(sockets, r.dir+"/k7", r.objects()[0])
	}
	for _, s := range sockets {
		l, err := net.Listen("unix", s)
		if os.IsExist(err) || errors.Is(err, unix.EADDRINUSE) {
			continue // it is a file of the row
		}
		must(t, err)
		must(t, os.Chmod(s, 0o777))
		t.Cleanup(func() { l.Close() })
		go func() {
			for {
				peer, err := l.Accept()
				if err != nil {
					return
				}
				peer.Close()
			}
		}()
	}
}

// inTurn says that a pair of an access and a key is the other engine's: without SBX_THOROUGH=1 each pair is tried with
// one of the engines, and each access and each key with both.
func inTurn(engine string, pair int) bool {
	return !need.Thorough() && pair%len(engines) != slices.Index(engines[:], engine)
}

func consentRows(m *fileProject, engine string) (rows []consentRow) {
	for i, op := range []string{"list", "read", "stat", "write", "create", "exec", "connect"} {
		for _, merged := range []bool{false, true} {
			switch {
			case merged && op == "connect": // each is a question of its own
				continue
			case merged && op == "create" && engine == "gatefs": // the kernel makes one name of a directory at a time
				continue
			}
			for j, key := range consentKeys {
				if op == "connect" && engine == "gatefs" && strings.ContainsRune("dt", rune(key.reach)) {
					continue // that would be all of the home
				}
				if merged && !need.Thorough() && !slices.Contains(mergedKeys, key.name) || inTurn(engine, i+j) {
					continue
				}
				rows = append(rows, consentRow{number: len(rows), engine: engine, op: op, merged: merged, key: key,
					dir: filepath.Join(m.home, "r", fmt.Sprint(len(rows)))})
			}
		}
	}
	return rows
}

// TestConsentThroughTheProgram: kind of access, one or several, and key: exactly these things are open to exactly these
// processes for that time, by the answer and by the rule, and the record says the same.
func TestConsentThroughTheProgram(t *testing.T) {
	t.Parallel()
	needSandbox(t)
	need.Tool(t, "python3")
	for _, engine := range engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			m := newFileProject(t, "")
			script, err := os.ReadFile("testdata/consent.py")
			must(t, err)
			must(t, os.WriteFile(m.project+"/consent.py", script, 0o644))
			must(t, os.MkdirAll(m.home+"/r/dummy", 0o755))
			for i := range 400 {
				must(t, os.WriteFile(fmt.Sprintf("%s/r/dummy/%d", m.home, i), nil, 0o644))
			}
			rows := consentRows(m, engine)
			for _, r := range rows {
				r.make(t)
			}
			must(t, shop.own(m.home))
			c := startConsent(t, m, engine, "table", "socket")
			for i := range rows {
				c.row(&rows[i])
			}
			c.end()
			checkRecord(t, m, rows)
			c = startConsent(t, m, engine, "rules", "deny")
			for _, r := range rows {
				if r.key.lasts == "forever" || r.key.name == "s" || r.key.name == "o" {
					c.ruled(r)
				}
			}
			c.end()
		})
	}
}

// row has the question of a row put, answers it, and tries everything.
func (c *consent) row(r *consentRow) {
	c.t.Helper()
	var ids []string
	for i, p := range r.objects() {
		ids = append(ids, c.begin(fmt.Sprint("w", i), r.op, p))
	}
	q := c.question()
	for len(q.objects()) < len(ids) { // it becomes one about all of them
		q = c.question()
	}
	if got := q.objects(); !slices.Equal(got, r.objects()) {
		c.t.Fatalf("%v: the question is about %q", r, got)
	}
	if want := askedRight(c.engine, r.op); q.right() != want {
		c.t.Errorf("%v: the question is about %s", r, q.Op)
	}
	r.right = q.right()
	c.answer(q, r.key)
	c.waited(*r, ids)
	for i := range ids {
		c.begin(fmt.Sprint("w", i), "end", "-")
	}
	for _, p := range r.probes() {
		open, questions := c.probe(p.op, p.path)
		want := r.open(p)
		ended := want && !open && r.key.name == "o" // what is mounted for two seconds may be gone again
		if !ended && open != want || open && questions > 0 {
			c.t.Errorf("%v: %s of %s by another process: open %t, want %t (%d questions)", r,
				p.op, strings.TrimPrefix(p.path, r.dir), open, want, questions)
		}
	}
}

// ruled tries everything in a session that asks nobody: what an answer for ever has left is as much, and what any other
// has left is nothing.
func (c *consent) ruled(r consentRow) {
	c.t.Helper()
	for _, p := range r.probes() {
		open, _ := c.probe(p.op, p.path)
		want := r.key.lasts == "forever" && r.key.allow && r.reached(p.path) &&
			slices.Contains(strings.Fields(brings(r.right)), p.op)
		if p == (consentProbe{"list", r.dir}) && r.key.reach == 'd' {
			continue // all names in it were granted, one by one
		}
		if open != want {
			c.t.Errorf("%v: %s of %s in the next session: open %t, want %t", r,
				p.op, strings.TrimPrefix(p.path, r.dir), open, want)
		}
	}
}

// grants are what the record is to have of the answer: what the key said.
func (r consentRow) grants() (out []string) {
	add := func(p, scope string) {
		decision := map[bool]string{true: "allow", false: "deny"}[r.key.allow]
		out = append(out, strings.Join([]string{decision, r.right, p, scope, r.key.lasts}, " "))
	}
	switch r.key.reach {
	case 'd':
		add(r.container(), "dir")
	case 't':
		add(r.container(), "tree")
		return out
	}
	for _, p := range r.objects() {
		if r.key.reach == 'f' || r.key.reach == 'd' && path.Dir(p) != r.container() {
			add(p, "file")
		}
	}
	return out
}

// recorded is an event of the record.
type recorded struct{ Kind, Op, Path, Decision, Scope, Life string }

// checkRecord compares the whole record of what was answered with what the keys said.
func checkRecord(t *testing.T, m *fileProject, rows []consentRow) {
	t.Helper()
	var want, got []string
	once := map[string]bool{}
	for line := range strings.Lines(m.run(t, m.project, shop.sbx, "audit", "--json", "table")) {
		var e recorded
		must(t, json.Unmarshal([]byte(line), &e))
		if e.Kind == "grant" {
			got = append(got, strings.Join([]string{e.Decision, e.Op, e.Path, e.Scope, e.Life}, " "))
		}
		if (e.Kind == "allow" || e.Kind == "deny") && e.Life == "once" {
			once[e.Kind+" "+consentRights[e.Op]+" "+e.Path] = true
		}
	}
	for _, r := range rows {
		want = append(want, r.grants()...)
		for _, p := range r.objects() {
			word := map[bool]string{true: "allow", false: "deny"}[r.key.allow]
			if r.key.reach == 0 && !once[word+" "+r.right+" "+p] {
				t.Errorf("%v: there is no record that %s was answered with %s once", r, p, word)
			}
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("the record has these answers:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// waited wants those who waited to have got what was answered.
func (c *consent) waited(r consentRow, ids []string) {
	c.t.Helper()
	for range ids {
		select {
		case got, ok := <-c.results:
			id, word, _ := strings.Cut(got, " ")
			if !ok || !slices.Contains(ids, id) || (word == "ok") != r.key.allow {
				c.t.Errorf("%v: who waited got %q", r, got)
			}
		case q := <-c.asked:
			c.t.Fatalf("%v: asked again: %+v", r, q)
		case <-time.After(time.Minute):
			c.t.Fatalf("%v: who waited got nothing", r)
		}
	}
}

func (c *consent) end() {
	c.t.Helper()
	c.inside.Close()
	if err := c.session.Wait(); err != nil {
		c.t.Errorf("the session: %v", err)
	}
}
