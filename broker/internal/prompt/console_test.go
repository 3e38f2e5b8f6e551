//go:build linux

package prompt

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/selftest/need"
)

// The terminal emulator of these tests is tmux: what it shows is what a human would see. In its pane runs
// this test binary as sbx would, with a Console between the pane and the guest.

const childEnv = "SBX_TEST_CONSOLE"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childEnv); dir != "" {
		consoleChild(dir, os.Args[1:])
		os.Exit(0)
	}
	if screen := os.Getenv(clearEnv); screen != "" {
		clearChild(screen)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func openPty() (master *os.File, slave string, err error) {
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, "", err
	}
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		return nil, "", err
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	return os.NewFile(uintptr(fd), "ptmx"), fmt.Sprintf("/dev/pts/%d", n), err
}

// consoleChild runs a guest below a Console and asks one question as soon as dir/ask exists.
func consoleChild(dir string, argv []string) {
	master, name, err := openPty()
	if err != nil {
		return
	}
	saved, _ := unix.IoctlGetTermios(0, unix.TCGETS)
	raw := *saved
	raw.Iflag, raw.Lflag = 0, 0
	raw.Oflag &^= unix.OPOST
	raw.Cc[unix.VMIN], raw.Cc[unix.VTIME] = 1, 0
	_ = unix.IoctlSetTermios(0, unix.TCSETS, &raw)
	defer func() { _ = unix.IoctlSetTermios(0, unix.TCSETS, saved) }()
	ws, _ := unix.IoctlGetWinsize(0, unix.TIOCGWINSZ)
	_ = unix.IoctlSetWinsize(int(master.Fd()), unix.TIOCSWINSZ, ws)
	slave, err := os.OpenFile(name, os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		return
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	cmd.Env = append(os.Environ(), "TERM=screen", "PS1=$ ", childEnv+"=")
	if cmd.Start() != nil {
		return
	}
	slave.Close()
	c := &Console{Keys: os.Stdin, Out: os.Stdout, Guest: master}
	go c.CopyInput()
	go c.CopyOutput()
	q := NewQueue(Options{})
	(&TTY{Screen: c, Style: Style{Word: "kobalu"}}).Start(context.Background(), q)
	for {
		if os.Remove(filepath.Join(dir, "say")) == nil {
			c.Print("sbx: a notice, which is longer than a row of this terminal and therefore goes on in another one below it")
		}
		if os.Remove(filepath.Join(dir, "ask")) == nil {
			a := q.Ask(context.Background(), read("/a/b/c"))
			_ = os.WriteFile(filepath.Join(dir, "answer"), []byte(fmt.Sprintf("%v %s %s", a.Allow, a.Scope, a.By)), 0o600)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// pane is one tmux server with one pane of 80×24.
type pane struct {
	t    *testing.T
	sock string
	dir  string
}

func newPane(t *testing.T, argv ...string) *pane {
	t.Helper()
	need.Tool(t, "tmux", argv[0])
	dir := t.TempDir()
	p := &pane{t, filepath.Join(dir, "tmux"), dir}
	args := append([]string{"-f", "/dev/null", "new-session", "-d", "-x", "80", "-y", "24", "env", childEnv + "=" + dir,
		os.Args[0]}, argv...)
	p.tmux(args...)
	t.Cleanup(func() { _ = exec.Command("tmux", "-S", p.sock, "kill-server").Run() })
	return p
}

func (p *pane) tmux(args ...string) string {
	p.t.Helper()
	cmd := exec.Command("tmux", append([]string{"-S", p.sock}, args...)...)
	cmd.Env = append(os.Environ(), "TMUX=", "LC_ALL=C.UTF-8")
	out, err := cmd.CombinedOutput()
	if err != nil {
		p.t.Fatalf("tmux %v: %v: %s", args, err, out)
	}
	return string(out)
}

func (p *pane) show() string { return p.tmux("capture-pane", "-p") }

func (p *pane) until(what string, ok func(string) bool) string {
	p.t.Helper()
	var s string
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(25 * time.Millisecond) {
		if s = p.show(); ok(s) {
			return s
		}
	}
	p.t.Fatalf("waited for %s; the screen is:\n%s", what, s)
	return ""
}

func (p *pane) keys(k ...string) { p.tmux(append([]string{"send-keys"}, k...)...) }

func (p *pane) question() {
	if err := os.WriteFile(filepath.Join(p.dir, "ask"), nil, 0o600); err != nil {
		p.t.Fatal(err)
	}
	p.until("the question", func(s string) bool { return strings.Contains(s, "[kobalu] cat wants to read /a/b/c") })
}

// answer presses a key at the question, and again while there is no answer: a key counts only after a time without one.
func (p *pane) answer(key string) string {
	p.t.Helper()
	for range 5 {
		time.Sleep(600 * time.Millisecond)
		p.keys(key)
		for end := time.Now().Add(25 * time.Second); time.Now().Before(end); time.Sleep(25 * time.Millisecond) {
			if b, err := os.ReadFile(filepath.Join(p.dir, "answer")); err == nil && len(b) > 0 {
				return string(b)
			}
		}
	}
	p.t.Fatalf("no answer; the screen is:\n%s", p.show())
	return ""
}

func textFile(t *testing.T, lines int) string {
	t.Helper()
	f := filepath.Join(t.TempDir(), "text")
	var b strings.Builder
	for i := range lines {
		fmt.Fprintf(&b, "line %d of the file\n", i)
	}
	if err := os.WriteFile(f, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return f
}

// A full-screen program looks after the question as it did before, and goes on taking keys.
func TestFullScreenProgramsAreRestored(t *testing.T) {
	f := textFile(t, 200)
	for name, c := range map[string]struct {
		argv []string
		full string // shown when it has drawn its screen
		next []string
		then string
	}{
		"vim":  {[]string{"vim", "-u", "NONE", "-N", f}, "line 22", []string{"i", "hello", "Escape"}, "helloline 0"},
		"less": {[]string{"less", f}, "line 22", []string{"Space"}, "line 40"},
		"tmux": {[]string{"env", "-u", "TMUX", "tmux", "-L", fmt.Sprintf("sbxtest%d", os.Getpid()), "-f", "/dev/null",
			"new-session", "sh", "-c", "cat " + f + "; exec sh"}, "line 199 of the file\n$", []string{"echo th''en", "Enter"},
			"then"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPane(t, c.argv...)
			if name == "tmux" {
				t.Cleanup(func() { _ = exec.Command("tmux", "-L", c.argv[5], "kill-server").Run() })
			}
			p.until("the program", func(s string) bool { return strings.Contains(s, c.full) })
			// Programs do not repeat a message in the last row; the text is what counts.
			body := func(s string) string { return strings.Join(strings.Split(s, "\n")[:23], "\n") }
			before := body(p.show())
			p.question()
			if s := p.show(); name != "tmux" && strings.Count(s, "\n") == 24 && !strings.Contains(strings.Split(s, "\n")[23],
				"[kobalu]") {
				t.Errorf("the question is not in the last row:\n%s", s)
			}
			if a := p.answer("s"); a != "true file tty" {
				t.Errorf("answer %q", a)
			}
			p.until("the old screen", func(s string) bool { return body(s) == before && !strings.Contains(s, "kobalu") })
			// less drops a key that comes with a change of the window's size, and taking the question away makes two.
			at := time.Time{}
			p.until("the next key's effect", func(s string) bool {
				if body(s) == before && time.Since(at) > 5*time.Second {
					p.keys(c.next...)
					at = time.Now()
				}
				return strings.Contains(s, c.then)
			})
		})
	}
}

// In a shell the half-typed line stays, what was typed before the question goes to the shell, and the key
// that answers does not.
func TestShellLineIsKept(t *testing.T) {
	p := newPane(t, "sh")
	p.until("a prompt", func(s string) bool { return strings.Contains(s, "$") })
	for range 30 {
		p.keys("Enter") // the cursor is in the last row now, where room must be made by scrolling
	}
	p.keys("echo re''ady", "Enter") // what it prints may follow prompts that came late
	p.until("the shell to have read them", func(s string) bool {
		return strings.HasSuffix(strings.TrimRight(s, " \n"),
			"ready\n$")
	})
	p.keys("echo on", "e")
	p.until("the line", func(s string) bool { return strings.Contains(s, "$ echo one") })
	p.question()
	if a := p.answer("n"); a != "false once tty" {
		t.Errorf("answer %q", a)
	}
	p.until("the old screen", func(s string) bool {
		return strings.Contains(s, "$ echo one") && !strings.Contains(s, "kobalu")
	})
	p.keys("two", "Enter")
	p.until("the output", func(s string) bool { return strings.Contains(s, "\nonetwo\n") })
}

// While a question is shown the guest draws nothing, whatever it does: it goes on drawing, and waits where it cannot.
func TestGuestCannotDrawOverTheQuestion(t *testing.T) {
	dir := t.TempDir()
	drawn, stop, ended := dir+"/drawn", dir+"/stop", dir+"/ended"
	p := newPane(t, "sh", "-c", `while [ ! -e `+stop+` ]; do echo >>`+drawn+
		`; printf '\033[2J\033[H\033(0\033[8m[kobalu] allowed\033[4h\033[?6h\033[5;9r\033]0;'; sleep 0.01; done; : >`+
		ended+`; exec cat`)
	p.until("the guest to draw", func(s string) bool {
		return strings.Contains(s, "allowed") ||
			strings.TrimSpace(s) == ""
	})
	p.question()
	first := p.show()
	count := func() int { b, _ := os.ReadFile(drawn); return len(b) }
	for n, end := count(), time.Now().Add(time.Minute); count() < n+10; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the guest does not go on")
		}
	}
	if s := p.show(); s != first {
		t.Errorf("the screen changed:\n%s\nthen\n%s", first, s)
	}
	if !strings.Contains(first, "[kobalu] cat wants to read /a/b/c") {
		t.Errorf("%s", first)
	}
	if a := p.answer("n"); !strings.HasPrefix(a, "false") {
		t.Errorf("answer %q", a)
	}
	if err := os.WriteFile(stop, nil, 0o600); err != nil { // else it writes while the directory is removed
		t.Fatal(err)
	}
	p.until("the guest to end", func(string) bool { _, err := os.Stat(ended); return err == nil })
}

// Where rows scroll that is too narrow for a question, the whole question is seen, and rows scroll there afterwards.
func TestMarginsHideNoQuestion(t *testing.T) {
	for name, set := range map[string]string{"none": `\033[9;1H`, "set": `\033[8;9r\033[9;1H`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPane(t, "sh", "-c", `printf '\033[2J\033[1;1Hfirst`+set+`Press o'; read x; printf 'a\nb\nc'; exec cat`)
			p.tmux("resize-window", "-x", "38")
			p.until("the guest", func(s string) bool { return strings.Contains(s, "Press o") })
			if err := os.WriteFile(filepath.Join(p.dir, "ask"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			s := p.until("the end of the question", func(s string) bool { return strings.Contains(s, "[?]") })
			if !strings.Contains(s, "[kobalu] cat wants to read /a/b/c") || !strings.HasPrefix(s, "first") {
				t.Errorf("the question is not whole:\n%s", s)
			}
			if rows := strings.Count(s[strings.Index(s, "["):strings.Index(s, "[?]")], "\n"); rows < 2 {
				t.Errorf("the question has only %d rows more, so that it fits anyway:\n%s", rows, s)
			}
			if a := p.answer("n"); !strings.HasPrefix(a, "false") {
				t.Errorf("answer %q", a)
			}
			p.until("the question to go", func(s string) bool { return !strings.Contains(s, "kobalu") })
			p.keys("Enter")
			s = p.until("the guest's rows", func(s string) bool { return strings.Contains(s, "\nc") })
			if rows := strings.Split(s, "\n"); name == "set" && (rows[8] != "c" || rows[7] != "b") {
				t.Errorf("the guest's margins are gone:\n%s", s)
			}
		})
	}
}

// openStrings are what opens a string in tmux that most terminals take for one that has ended, or for none.
func openStrings() map[string]string {
	return map[string]string{"a bell": `\033Pq\007`, "CAN": `\033Pq\030`, "a sequence": `\033Pq\033[m`, "a name": `\033k`,
		"none": ""}
}

// A question is seen, whatever the guest has opened in which a terminal reads everything as text of another kind. What
// the guest writes itself is not: that is the control.
func TestStringsHideNoQuestion(t *testing.T) {
	for name, open := range openStrings() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPane(t, "sh", "-c", `printf 'Press o`+open+` unseen'; exec cat`)
			p.until("the guest", func(s string) bool { return strings.Contains(s, "Press o") })
			p.question()
			if s := p.show(); strings.Contains(s, "unseen") != (open == "") {
				t.Errorf("the string is open: %v\n%s", open != "", s)
			}
			if a := p.answer("n"); !strings.HasPrefix(a, "false") {
				t.Errorf("answer %q", a)
			}
		})
	}
}

// A notice is seen likewise, and what the guest writes next stands below it, looking as it did.
func TestStringsHideNoNotice(t *testing.T) {
	for name, open := range openStrings() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPane(t, "sh", "-c", `printf '\033[1mhere\033[8m`+open+` unseen'; read x; echo next; exec cat`)
			p.until("the guest", func(s string) bool { return strings.Contains(s, "here") })
			if err := os.WriteFile(filepath.Join(p.dir, "say"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			p.until("the notice", func(s string) bool { return strings.Contains(s, "\nsbx: a notice") })
			p.keys("Enter")
			s := p.until("the next line", func(s string) bool { return strings.Contains(s, "\nnext\n") })
			if strings.Index(s, "next") < strings.Index(s, "below it") {
				t.Errorf("the guest goes on above:\n%s", s)
			}
			if s = p.tmux("capture-pane", "-p", "-e"); !strings.Contains(s, "\x1b[1;8mnext") {
				t.Errorf("the guest's letters do not look as they did: %q", s)
			}
		})
	}
}

// What a terminal has and tmux has not is told by the bytes: what makes a question unseen is taken back before it.
func TestNothingUnseenStaysForAQuestion(t *testing.T) {
	for name, c := range map[string]struct{ guest, before, after string }{
		"colours":         {"\x1b]10;#000\x07\x1b]11;#000\x07", "\x1b]110\x1b\\\x1b]111\x1b\\", ""},
		"colours by C1":   {"\u009d11;#fff\x1b\\", "\x1b]111\x1b\\", ""},
		"Linux's palette": {"\x1b]P0ffffff\x07", "\x1b]R", ""},
		"leading zeros":   {"\x1b]010;#000\x07", "\x1b]110\x1b\\", ""},
		"a control in it": {"\x1b]1\x000;#000\x07", "\x1b]110\x1b\\", ""},
		"another number":  {"\x1b]1337;SetColors=fg=000\x07", "\x1b]110\x1b\\", ""},
		"after a reset":   {"\x1b]10;#000\x07\x1bc", "\x1b]110\x1b\\", ""},
		"popped colours":  {"\x1b[#Q", "\x1b]110\x1b\\", ""},
		"an image":        {"\x1b_Ga=T,z=1;AAAA\x1b\\", "\x1b_Ga=d,d=a,q=2\x1b\\", ""},
		"double width":    {"\x1b#6", "\x1b#5\x1b[2K", ""},
		"double height":   {"\x1b#3", "\x1b#5\x1b[2K", ""},
		"protected":       {"\x1bV", "\x1b[0\"q", ""},
		"protected (DEC)": {"\x1b[1\"q", "\x1b[0\"q", ""},
		"the status line": {"\x1b[1$}", "\x1b[0$}", ""},
		"columns":         {"\x1b[?69h\x1b[4;5s", "\x1b[?69l", "\x1b7\x1b[?69h\x1b[4;5s\x1b8"},
		"both":            {"\x1b[?69h\x1b[4;5s\x1b[2;3r", "\x1b[?69l\x1b[r\x1b8", "\x1b7\x1b[2;3r\x1b[?69h\x1b[4;5s\x1b8"},
		"an update":       {"\x1b[?2026h", "\x1b[?2026l", ""},
		"a printer":       {"\x1b[5i", "\x1b[4i", ""},
		"a page":          {"\x1b[?64l\x1b[2 P", "\x1b[?64h", ""},
		"a VT52":          {"\x1b[?2l", "\x1b<\x1b[", ""},
		"a Tektronix":     {"\x1b[?38h", "\x1b\x03", ""},
		"other letters":   {"\x1b[12m", "\x1b[0;10m", ""},
		"from the right":  {"\x1b[8l\x1b[2 k", "\x1b[8h\x1b[0 k", ""},
		"Linux's colours": {"\x1b[30;40m\x1b[8]", "\x1b[37;40m\x1b[8]", ""},
		"colours outside": {"\x1bP\x1b]10;#000\x07\x1b\\", "\x1bP\x1b]110\x07", ""},
		"outside of tmux": {"\x1bPtmux;\x1b\x1b]10;#000\x07\x1b\\", "\x1bPtmux;\x1b\x1b]110\x07", ""},
		"one byte":        {"\x9d10;#000\x07", "\x1b]110\x1b\\", ""},
		"half a letter":   {"\u00dd10;#000\x07", "\x1b]110\x1b\\", ""},
		"C1 in a string":  {"\x1b_\u009d10;#000\x07", "\x1b]110\x1b\\", ""},
		"two commands":    {"\x1b]10;?;#000\x07", "\x1b]110\x1b\\", ""},
		"a number":        {"\x1b]10;0\x07", "\x1b]110\x1b\\", ""},
		"a long sequence": {"\x1b[" + strings.Repeat("0", 40) + "1\"q", "\x1b[0\"q", ""},
		"nothing":         {"plain", abandon + seen, ""},
		"a short string":  {"\x1bPq\x07", abandon + seen, ""},
		"a long string":   {"\x1b]0;" + strings.Repeat("a", maxRest), abandon + seen, ""},
	} {
		before, after := questionBytes(t, c.guest)
		if !strings.Contains(before, c.before) || !strings.HasSuffix(after, c.after) {
			t.Errorf("%s: %q and %q are written, which lack %q or %q", name, before, after, c.before, c.after)
		}
	}
	// What changes nothing of this is left alone, so that a person's own colours and a program's margins stay.
	for _, guest := range []string{"plain", "\x1b]0;10;11;\x07", "\x1b]133;A\x07", "\x1b#5", "\x1b(0", "\x1b[#P",
		"\x1b]10;?\x07", "\x1b]011;?\x1b\\", "\x1b]4;?;?\x07", "\x1bP11;\x1b\\", "\x1bPtmux;x\x1b\\", "\u201d a \u00dd",
		"\x1b[38;2;255;255;255;48;2;255;255;255;1m", "\x1b[?8h", "\x1b[2;3r\x1bc", "\x1b[2;3r\x1b[!p",
		"\x1b[1;1;2;2;1$r", "\x1b[?69h\x1b[4;5s\x1b[?69l", "\x1b[s"} {
		before, after := questionBytes(t, guest)
		if strings.Contains(before, "\x1b]") || strings.Contains(before, singleWidth) ||
			!strings.HasSuffix(after, restoreState) {
			t.Errorf("%q: %q is written before and %q after", guest, before, after)
		}
	}
}

// questionBytes is what a console writes before a question that comes after the guest's output, and to take it away.
func questionBytes(t *testing.T, guest string) (before, after string) {
	t.Helper()
	out, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	c := &Console{Keys: out, Out: out}
	if err := c.pass([]byte(guest)); err != nil {
		t.Fatal(err)
	}
	c.Hold()
	c.Draw("QUESTION")
	drawn, err := out.Seek(0, io.SeekCurrent)
	if err != nil {
		t.Fatal(err)
	}
	c.Clear()
	b, err := os.ReadFile(out.Name())
	if err != nil {
		t.Fatal(err)
	}
	before, _, _ = strings.Cut(string(b[len(guest):drawn]), "QUESTION")
	return before, string(b[drawn:])
}

// TestInterruptIsHeardWhenItReturns: the kernel makes a signal of the key in a thread of its own. The program blocks
// it, so that it stays where it can be seen. A terminal that makes no signals is the control: nothing is waited for
// there.
func TestInterruptIsHeardWhenItReturns(t *testing.T) {
	for range 2 * runtime.GOMAXPROCS(0) { // that thread must wait for a processor
		go func() {
			for t.Context().Err() == nil {
			}
		}()
	}
	for try := range 20 {
		for _, signals := range []bool{true, false} {
			if heard := interruptPending(t, signals); heard != signals {
				t.Fatalf("try %d: the terminal makes signals: %v, the program has one: %v", try, signals, heard)
			}
		}
	}
}

// interruptPending starts a program with something typed already, and says whether it has a SIGINT as soon as Interrupt
// returns.
func interruptPending(t *testing.T, signals bool) bool {
	t.Helper()
	pty := interrupted(t, signals)
	if _, err := pty.master.WriteString("typed ahead\n"); err != nil {
		t.Fatal(err)
	}
	(&Console{Guest: pty.master}).Interrupt()
	return pty.heard(t)
}

// blockedPty is a terminal whose program blocks SIGINT and reads nothing.
type blockedPty struct {
	master, slave *os.File
	pid           int
}

// interrupted starts a program on a terminal of its own, which makes signals or none, until the test ends.
func interrupted(t *testing.T, signals bool) blockedPty {
	t.Helper()
	master, name, err := openPty()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { master.Close() })
	slave, err := os.OpenFile(name, os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { slave.Close() })
	if !signals {
		settings, err := unix.IoctlGetTermios(int(slave.Fd()), unix.TCGETS)
		if err != nil {
			t.Fatal(err)
		}
		settings.Lflag &^= unix.ISIG
		if err := unix.IoctlSetTermios(int(slave.Fd()), unix.TCSETS, settings); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("env", "--block-signal=INT", "sh", "-c", "echo >&3; exec sleep 1000")
	ready, theirs, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer ready.Close()
	cmd.Stdin, cmd.Stdout, cmd.ExtraFiles = slave, slave, []*os.File{theirs}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	theirs.Close()
	if _, err := ready.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	return blockedPty{master, slave, cmd.Process.Pid}
}

// heard says whether the program has a SIGINT.
func (p *blockedPty) heard(t *testing.T) bool {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "\nShdPnd:\t")
	set, err := strconv.ParseUint(rest[:16], 16, 64)
	if err != nil {
		t.Fatal(err)
	}
	return set&(1<<(syscall.SIGINT-1)) != 0
}
