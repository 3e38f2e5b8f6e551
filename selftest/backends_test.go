//go:build linux

package selftest

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/selftest/need"
)

// backendNames are the columns of docs/backends.md, from left to right.
var backendNames = [...]string{"native", "helper", "bwrap", "landlock", "vm", "passthrough"}

// suidBwrap is bwrap as well, on a host where it is set-user-id and there are no user namespaces.
const suidBwrap = "set-user-id bwrap"

// holding is a row of docs/backends.md that is looked at from inside.
type holding struct {
	what    string   // what the row says
	options []string // of sbx run, besides --static
	try     string   // a program in sh: it exits with 0 if what the row says is so
	loss    string   // what a run prints first that does not do it
	not     []string // backends in which this host cannot show it
}

// holdings are looked at by a program whose project has a hidden .env, beside $HOST, a process of the user's outside.
func holdings() []holding {
	python := func(text string) string { return "python3 -c '" + text + "'" }
	return []holding{
		{what: "what is not granted cannot be read or written",
			try: "! cat ~/apart/file && ! sh -c 'echo x >>~/apart/file'"},
		{what: "what is not granted is absent", try: "! stat ~/apart/file", loss: "absence"},
		{what: "secrets cannot be read, also in a granted tree", options: []string{"--ro", "~/granted"},
			try: "cat ~/granted/file && ! cat ~/granted/.ssh/id_rsa && [ -z \"$(cat .env)\" ] && [ -e main.c ]"},
		{what: "a secret that the host makes later is hidden", loss: "late secrets|guarded names", try: `touch ready
			until [ -e later/made ]; do sleep .02; done
			n=0; while cat later/.env; do n=$((n + 1)); [ $n -lt 50 ] || exit 1; sleep .05; done`},
		{what: "guarded names of a writable tree (hooks, `.envrc`)", loss: "guarded names",
			try: "echo x >plain && ! sh -c 'echo x >.envrc' && ! sh -c 'echo x >.git/hooks/pre-commit'"},
		{what: "attributes of files outside cannot be changed", options: []string{"--ro", "~/granted"},
			try: "! chmod 600 ~/granted/file && ! touch -d @1 ~/granted/file"},
		{what: "a file made beside a hidden name can be run", loss: "names in|running",
			try: "printf '#!/bin/sh\\n' >run.sh && chmod +x run.sh && ./run.sh"},
		{what: "processes outside: their memory, environment, files",
			try: "! head -c 1 /proc/$HOST/environ && ! ls /proc/$HOST/root/ && ! sh -c ': </proc/'$HOST'/mem'"},
		{what: "processes outside: that they are there, their command lines", loss: "processes",
			try: "! [ -d /proc/$HOST ]"},
		{what: "what `/proc` says of the host: connections, queues, mounts, names of keys", loss: "processes",
			try: "! grep -q granted/s /proc/net/unix && ! grep -qw $KEY /proc/sysvipc/shm"},
		{what: "signals to processes outside", loss: "signals", try: "! kill -0 $HOST"},
		{what: "nothing outlives the session", try: "setsid sleep 94.$HOST >/dev/null 2>&1 & " +
			"for i in $(seq 500); do grep -qs sleep /proc/$!/comm && break; done; true"}, // it runs before the session ends
		{what: "no network", try: "! " + python(`import socket; socket.create_connection(("127.0.0.1", `+"'$PORT'"+`))`)},
		{what: "127.0.0.1 and unix sockets inside", loss: "loopback and sockets|files in a virtual machine",
			try: python(`import os, socket
a = socket.create_server(("127.0.0.1", 0)); socket.create_connection(a.getsockname())
b = socket.socket(socket.AF_UNIX); b.bind("s"); b.listen(); socket.socket(socket.AF_UNIX).connect("s"); os.unlink("s")`)},
		{what: "sockets of the host cannot be connected to", options: []string{"--ro", "~/granted"},
			try: "! " + python(`import os, socket; socket.socket(socket.AF_UNIX).connect(os.path.expanduser("~/granted/s"))`)},
		{what: "queues and shared memory of other programs",
			try: "! " + python(`import ctypes; assert ctypes.CDLL(None).shmget('$KEY', 0, 0) >= 0`)},
		{what: "`/tmp`, `/dev/shm` and host name of its own", loss: "/tmp, /dev/shm",
			try: `! [ -e /tmp/$MARK ] && ! [ -e /dev/shm/$MARK ] && [ "$(uname -n)" != '` + hostName() + `' ]`},
		{what: "layers over caches", loss: "layers over caches|caches",
			try: "cat ~/.cache/go-build/x && echo x >~/.cache/go-build/inside"},
		{what: "further terminals (`script`, `tmux`)", loss: "/tmp, /dev/shm, /dev/pts", try: "script -qec true /dev/null"},
		{what: "questions", options: []string{"--mode", "dynamic", "--prompt", "allow"}, loss: "questions",
			not: []string{"passthrough"}, // where nothing is asked about
			try: "cat ~/apart/file"},
	}
}

func hostName() string {
	name, _ := os.Hostname()
	return name
}

// refusable are the rows of docs/backends.md that are options. Asking for one is an error, or a loss, or it is had.
func refusable() map[string][][]string {
	return map[string][][]string{
		"`--allow-network`, `--allow-host`, `--with`": {{"--allow-network"}, {"--allow-host", "registry.example"}},
		"`--publish`, `--host-port`":                  {{"--publish", "8080:80"}, {"--host-port", "8080"}},
		"`--ephemeral`, `--overlay`":                  {{"--ephemeral"}, {"--overlay", "~/granted"}},
		"`--tmpfs`, `--hostname`":                     {{"--tmpfs", "~/x"}, {"--hostname", "x"}},
		"`--socket` and other doors":                  {{"--socket", "~/granted/s"}},
		"`--only`":                                    {{"--only", "sh"}},
		"`--nested`":                                  {{"--nested"}},
		"`--containers`":                              {{"--containers"}},
		"`--as-pid-1`, `--time-offset`":               {{"--as-pid-1"}, {"--time-offset", "1h"}},
	}
}

var lossLine = regexp.MustCompile(`(?m)^loss .*`)

// backendHost is one backend with a home of its own for it.
type backendHost struct {
	name          string
	mode          string // of what is installed, for the launcher; "": nothing is
	home, project string
	mark          string
	left          string   // a process that must not be left
	env           []string // options of sbx run
	losses        int      // of a run without options
}

// TestBackendsTable holds docs/backends.md to what each backend does: a cell begins with the word for what was seen.
func TestBackendsTable(t *testing.T) {
	t.Parallel()
	needSandbox(t)
	needHelper(t)
	need.Tool(t, "python3", "script", "ipcrm", "bwrap")
	needScopes(t)
	text, err := os.ReadFile("../docs/backends.md")
	must(t, err)
	said := tableOf(string(text))
	checked := map[string]bool{}
	expect := func(row string, column int, got, why string) {
		checked[row] = true
		if got == "" { // not here
			return
		}
		cells, ok := said[row]
		if !ok {
			t.Errorf("docs/backends.md has no row %q", row)
		} else if word, _, _ := strings.Cut(strings.Fields(cells[column])[0], ":"); strings.Trim(word, ",") != got {
			t.Errorf("%s, %s: docs/backends.md says %q, and it is %q\n%s", row, backendNames[column], cells[column], got, why)
		}
	}
	for _, name := range append(backendNames[:], suidBwrap) {
		whole := os.Getenv(machineKernel) != ""
		if name == "vm" && !whole && !hasEmulator() || name != "vm" && whole {
			continue
		}
		h := newBackendHost(t, name)
		column := slices.Index(backendNames[:], h.name)
		seen := func(row, got, why string) { expect(row, column, got, why) }
		if name == "vm" {
			h.lookInMachine(t, whole, seen)
		} else {
			h.lookAtAll(t, slices.DeleteFunc(holdings(), func(row holding) bool {
				return slices.Contains(row.not, name)
			}), seen)
		}
		if name == "passthrough" { // no option holds there, and it says so of all at once
			continue
		}
		for row, options := range refusable() {
			for _, o := range options {
				got, why := h.ask(t, o)
				expect(row, column, got, strings.Join(o, " ")+"\n"+why)
			}
		}
	}
	for row := range said {
		if !checked[row] && !slices.Contains(seenElsewhere(), row) {
			t.Errorf("docs/backends.md has a row that nothing looks at: %s", row)
		}
	}
}

// needScopes is for tests that rely on what Landlock knows of signals.
func needScopes(t *testing.T) {
	t.Helper()
	const scopes = 6 // the ABI
	abi, _, _ := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	need.Fact(t, int(abi) >= scopes, "Landlock with ABI %d", scopes)
}

// machineKernel names a kernel with which the column of the backend vm alone is looked at, also from inside.
// selftest/vm has one, and runs this test again with it.
const machineKernel = "SBX_MACHINE_KERNEL"

// lookInMachine looks at all rows in one machine, but for those that take a session of another mode: these have one
// each, with make vm alone. Where there is no kernel it looks at none.
func (h *backendHost) lookInMachine(t *testing.T, kernel bool, expect func(row, got, why string)) {
	t.Helper()
	args := append(slices.Clone(h.env), "--static", "--ro", h.home+"/granted")
	var rows []holding
	for _, row := range holdings() {
		switch {
		case !kernel:
			expect(row.what, "", "")
		case !slices.Contains(row.options, "--mode"):
			rows = append(rows, row)
		case os.Getenv("SBX_VM") == "full":
			h.lookAtAll(t, []holding{row}, expect)
		default:
			expect(row.what, "", "")
		}
	}
	if len(rows) > 0 {
		h.lookTogether(t, rows, args, expect)
	}
}

func hasEmulator() bool {
	_, err := exec.LookPath("qemu-system-x86_64")
	return err == nil && runtime.GOARCH == "amd64"
}

// machineSettings names the kernel for the backend vm: what begins as an image is enough to plan with.
func machineSettings(t *testing.T, home string) {
	t.Helper()
	kernel := os.Getenv(machineKernel)
	if kernel == "" {
		kernel = filepath.Join(home, "vmlinuz")
		image := make([]byte, 2048)
		copy(image[0x202:], "HdrS")
		image[0x20e], image[0x20f] = 0, 2 // where the version stands, less 0x200
		copy(image[0x400:], "6.1.0-x (nobody)")
		must(t, os.WriteFile(kernel, image, 0o644))
	}
	must(t, os.MkdirAll(filepath.Join(home, ".config/sbx"), 0o755))
	must(t, os.WriteFile(filepath.Join(home, ".config/sbx/config.toml"), []byte("[vm]\naccel = \"emulation\"\nkernel = \""+
		kernel+"\"\n"), 0o644))
}

// seenElsewhere are the rows that other tests show: limits need control groups, the others more than one program.
func seenElsewhere() []string {
	return []string{"limit on processes", "a terminal, signals, exit status, `--timeout`",
		"`sbx exec`, `sbx file`"}
}

// tableOf reads the rows of the table with the columns.
func tableOf(text string) map[string][]string {
	rows := map[string][]string{}
	for line := range strings.Lines(text) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) == 1+len(backendNames) && !strings.HasPrefix(line, "|---") && !strings.HasPrefix(line, "| what |") {
			for i := range cells {
				cells[i] = strings.TrimSpace(cells[i])
			}
			rows[cells[0]] = cells[1:]
		}
	}
	return rows
}

// newBackendHost makes a home, and beside it what a program must not reach.
func newBackendHost(t *testing.T, name string) *backendHost {
	t.Helper()
	home, project := sandboxHome(t)
	mode := map[string]string{"helper": "4755", suidBwrap: "4755+bwrap"}[name]
	if name == suidBwrap {
		name = "bwrap"
	}
	h := &backendHost{name: name, mode: mode, home: home, project: project,
		mark: "sbx-" + filepath.Base(filepath.Dir(home))}
	for _, d := range []string{"apart", "granted/.ssh", "project/later", ".cache/go-build"} {
		must(t, os.MkdirAll(filepath.Join(home, d), 0o755))
	}
	for _, f := range []string{"apart/file", "granted/file", "granted/.ssh/id_rsa", ".cache/go-build/x"} {
		must(t, os.WriteFile(filepath.Join(home, f), []byte("-----BEGIN OPENSSH PRIVATE KEY-----\n"), 0o644))
	}
	for _, dir := range []string{"/tmp/", "/dev/shm/"} {
		must(t, os.WriteFile(dir+h.mark, nil, 0o644))
		t.Cleanup(func() { os.Remove(dir + h.mark) })
	}
	var ports []int
	for network, at := range map[string]string{"tcp": "127.0.0.1:0", "unix": home + "/granted/s"} {
		l, err := net.Listen(network, at)
		must(t, err)
		t.Cleanup(func() { l.Close() })
		if a, ok := l.Addr().(*net.TCPAddr); ok {
			ports = append(ports, a.Port)
		}
	}
	must(t, os.Chmod(home+"/granted/s", 0o666))
	if name == "vm" {
		machineSettings(t, home)
	}
	must(t, shop.own(home))
	other := startAsUser(t, home, home, "sleep", fmt.Sprintf("96.%d", os.Getpid()))
	h.left = fmt.Sprintf("sleep 94.%d", other.Process.Pid)
	key := 0x5b0000 + other.Process.Pid
	id, err := exec.Command("python3", "-c", "import ctypes; print(ctypes.CDLL(None).shmget("+strconv.Itoa(key)+
		", 4096, 0o1666))").Output()
	must(t, err)
	t.Cleanup(func() { _ = exec.Command("ipcrm", "-m", strings.TrimSpace(string(id))).Run() })
	for _, v := range []string{"HOST=" + strconv.Itoa(other.Process.Pid), "PORT=" + strconv.Itoa(ports[0]),
		"KEY=" + strconv.Itoa(key), "MARK=" + h.mark} {
		h.env = append(h.env, "-e", v)
	}
	_, plain := h.run(t, "--static", "--dry-run", "-v", "--", "sh", "-c", ":")
	h.losses = len(lossLine.FindAllString(plain, -1))
	return h
}

// run runs sbx run with a program.
func (h *backendHost) run(t *testing.T, args ...string) (status int, out string) {
	t.Helper()
	argv := append([]string{shop.sbx, "run", "--backend", h.name}, args...)
	if h.mode != "" {
		argv = shop.launch(h.mode, argv...)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = h.project, shop.env(h.home, h.home)
	if h.mode == "" {
		cmd.SysProcAttr = shop.attr()
	}
	var text bytes.Buffer
	cmd.Stdout, cmd.Stderr = &text, &text
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), text.String()
}

// lookAtAll looks at rows, in one session for those with the same options.
func (h *backendHost) lookAtAll(t *testing.T, rows []holding, expect func(row, got, why string)) {
	t.Helper()
	groups := map[string][]holding{}
	for _, row := range rows {
		key := strings.Join(row.options, " ")
		groups[key] = append(groups[key], row)
	}
	for _, key := range slices.Sorted(maps.Keys(groups)) {
		args := slices.Clone(h.env)
		if !strings.Contains(key, "--mode") {
			args = append(args, "--static")
		}
		for _, o := range groups[key][0].options {
			args = append(args, strings.Replace(o, "~", h.home, 1))
		}
		h.lookTogether(t, groups[key], args, expect)
	}
}

// lookTogether says what a backend does of rows in one session: yes, loss, refused or no.
func (h *backendHost) lookTogether(t *testing.T, rows []holding, args []string, expect func(row, got, why string)) {
	t.Helper()
	script := "cd " + h.project + "\n"
	for i, row := range rows {
		script += fmt.Sprintf("( %s\n) </dev/null >/dev/null 2>&1; echo \"row %d: $?\"\n", row.try, i)
	}
	stop := h.makeLater()
	status, out := h.run(t, append(args, "--", "sh", "-c", script)...)
	stop()
	for i, row := range rows {
		said := regexp.MustCompile(fmt.Sprintf(`(?m)^row %d: (\d+)\r?$`, i)).FindStringSubmatch(out)
		got := status
		switch {
		case said != nil:
			got, _ = strconv.Atoi(said[1])
		case status != 125:
			t.Fatalf("%s, %s: nothing is said of it: status %d\n%s", row.what, h.name, status, out)
		}
		expect(row.what, row.verdict(got, h.outlived(row), out), out)
	}
}

// verdict is the word for what a run has shown of a row.
func (row holding) verdict(status int, outlived bool, out string) string {
	switch {
	case status == 125:
		return "refused"
	case status == 0 && !outlived:
		return "yes"
	case row.loss != "" && regexp.MustCompile("(?m)^sbx: ("+row.loss+")").MatchString(out):
		return "loss"
	}
	return "no"
}

// outlived says whether something is there still, or has been written, that a session must not leave.
func (h *backendHost) outlived(row holding) bool {
	switch row.what {
	case "nothing outlives the session":
		defer func() { _ = exec.Command("pkill", "-f", h.left).Run() }()
		return waitGone(h.left, 2*time.Second) != nil
	case "layers over caches":
		_, err := os.Stat(filepath.Join(h.home, ".cache/go-build/inside"))
		return err == nil
	}
	return false
}

// makeLater makes a secret as soon as a program says that it runs.
func (h *backendHost) makeLater() (stop func()) {
	ready, end := filepath.Join(h.project, "ready"), make(chan bool)
	go func() {
		for {
			select {
			case <-end:
				return
			case <-time.After(10 * time.Millisecond):
			}
			if os.Remove(ready) == nil {
				_ = os.WriteFile(filepath.Join(h.project, "later/.env"), []byte("KEY=1\n"), 0o644)
				_ = os.WriteFile(filepath.Join(h.project, "later/made"), nil, 0o644)
			}
		}
	}()
	return func() { close(end) }
}

// ask says what becomes of options that a run has.
func (h *backendHost) ask(t *testing.T, options []string) (word, why string) {
	t.Helper()
	var args []string
	for _, o := range options {
		args = append(args, strings.Replace(o, "~", h.home, 1))
	}
	status, out := h.run(t, append(args, "--static", "--dry-run", "-v", "--", "sh", "-c", ":")...)
	losses := lossLine.FindAllString(out, -1)
	switch {
	case status == 125:
		return "refused", out
	case status != 0:
		return fmt.Sprintf("status %d", status), out
	case len(losses) > h.losses:
		return "loss", strings.Join(losses, "\n")
	}
	return "yes", ""
}
