package credential

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"

	"sbx.example/sbx/audit"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/program"
	"sbx.example/sbx/broker/internal/quoting"
	"sbx.example/sbx/shared/proxied"
)

// Service is the sbx-proxy of a run.
type Service struct {
	proc  *os.Process
	conf  *os.File // it ends when this is closed
	ended chan struct{}

	mu     sync.Mutex
	log    *audit.Writer
	early  []audit.Event // before there was a record
	over   bool
	closed bool
}

// start starts sbx-proxy with the sockets inside, and writes what has tools trust it.
func (g *Grants) start(listeners []*os.File, closed, open []netip.Prefix, dir string) error {
	fail := func(err error) error {
		return &planner.Refusal{What: "starting sbx-proxy for --with", Err: err}
	}
	conf := proxied.Config{Sites: g.sites, Listeners: g.listen, Roots: host.Lookup(g.by.Env, "SSL_CERT_FILE")}
	for _, p := range closed {
		conf.Closed = append(conf.Closed, p.String())
	}
	for _, p := range open {
		conf.Open = append(conf.Open, p.String())
	}
	var values []*os.File
	defer func() {
		for _, f := range values {
			f.Close()
		}
	}()
	for _, x := range g.list {
		f, err := g.value(x)
		if err != nil {
			return &planner.Refusal{What: "credential " + x.Name + " (" + x.Origin.String() + ")", Err: err}
		}
		values = append(values, f)
		conf.Secrets = append(conf.Secrets, proxied.Secret{Name: x.Name, Placeholder: x.placeholder})
	}
	theirs, ours, err := os.Pipe()
	if err != nil {
		return fail(err)
	}
	defer theirs.Close()
	in, out, err := os.Pipe()
	if err != nil {
		ours.Close()
		return fail(err)
	}
	files := append([]*os.File{nil, nil, nil, theirs, out}, values...)
	// Its own process group: a Ctrl-C at the terminal is for the program inside.
	g.proc, err = g.file.StartPowerless([]string{"serve"}, &os.ProcAttr{Files: append(files, listeners...), Dir: "/",
		Env: []string{program.Path}, Sys: ownGroup()})
	out.Close()
	if err != nil {
		ours.Close()
		in.Close()
		return fail(err)
	}
	g.conf, g.ended = ours, make(chan struct{})
	ready := make(chan proxied.Report, 1)
	go g.follow(in, ready)
	if err := json.NewEncoder(ours).Encode(&conf); err != nil {
		return fail(err)
	}
	select {
	case r := <-ready:
		if r.Ready == nil {
			return &planner.Refusal{What: "starting sbx-proxy for --with: " + quoting.ASCII(r.Failed)}
		}
		return g.certificates(r.Ready.CA, dir)
	case <-time.After(startPatience):
		return fail(errors.New("it did not come up in time"))
	}
}

const startPatience = 30 * time.Second

// commandPatience is how long a command may take that prints a value: it may ask a person.
const commandPatience = 2 * time.Minute

// value opens what a credential's value can be read from. The value does not pass through this process, but where it
// has it already.
func (g *Grants) value(x granted) (*os.File, error) {
	switch {
	case x.FromFile != "":
		return os.Open(x.FromFile)
	case x.FromEnv != "":
		v := host.Lookup(g.by.Env, x.FromEnv)
		if v == "" {
			return nil, fmt.Errorf("the variable %s is not set", x.FromEnv)
		}
		return filled(func(w *os.File) error { _, err := io.WriteString(w, v); return err })
	case x.FromCommand != "":
		return filled(func(w *os.File) error {
			ctx, cancel := context.WithTimeout(context.Background(), commandPatience)
			defer cancel()
			cmd, err := program.Shell(ctx, x.FromCommand, g.shell)
			if err != nil {
				return err
			}
			cmd.Stdout = w
			if err := cmd.Run(); err != nil {
				return fmt.Errorf("its command failed: %w", err)
			}
			return nil
		})
	}
	return nil, errors.New("it has no value: from_command, from_env or from_file says where it is")
}

// filled is a pipe with what fill writes, which fits into it.
func filled(fill func(*os.File) error) (*os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	err = fill(w)
	w.Close()
	if err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// certificates writes the session's authority, and the host's list with it behind.
func (g *Grants) certificates(ca, dir string) error {
	list := bundles()
	if own := host.Lookup(g.by.Env, "SSL_CERT_FILE"); own != "" {
		list = []string{own}
	}
	var bundle []byte
	for _, file := range list {
		var err error
		if bundle, err = os.ReadFile(file); err == nil {
			break
		}
	}
	if len(bundle) > 0 && bundle[len(bundle)-1] != '\n' {
		bundle = append(bundle, '\n')
	}
	return errors.Join(os.WriteFile(etc(dir, caFile), []byte(ca), 0o644),
		os.WriteFile(etc(dir, bundleFile), append(bundle, ca...), 0o644))
}

// maxReport bounds a line of sbx-proxy's.
const maxReport = 1 << 20

// follow hears what sbx-proxy reports until it ends.
func (g *Grants) follow(in *os.File, ready chan<- proxied.Report) {
	defer close(g.ended)
	defer in.Close()
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxReport)
	for lines.Scan() {
		var r proxied.Report
		if json.Unmarshal(lines.Bytes(), &r) != nil {
			continue
		}
		switch {
		case r.Use != nil:
			g.use(r.Use)
		default:
			select {
			case ready <- r:
			default:
			}
		}
	}
	state, err := g.proc.Wait()
	select {
	case ready <- proxied.Report{Failed: fmt.Sprintf("it ended: %v", state)}:
	default:
	}
	g.mu.Lock()
	over := g.over
	g.mu.Unlock()
	if !over && err == nil {
		text := "sbx-proxy ended (" + state.String() + "): the hosts of credentials cannot be reached any more"
		g.by.Warn(text)
		g.note(audit.Event{Kind: audit.KindError, UID: os.Getuid(), Op: "network", Reason: text})
	}
}

// use records one request.
func (g *Grants) use(u *proxied.Use) {
	at := server(u.Host, u.Port)
	e := audit.Event{Kind: audit.KindCredential, UID: os.Getuid(), Op: "use", Host: u.Host, Port: int(u.Port),
		Decision: "allow", Reason: u.Failed}
	for _, kv := range []audit.KV{{K: "credential", V: u.Secret}, {K: "method", V: u.Method},
		{K: "status", V: number(u.Status)}} {
		if kv.V != "" {
			e.Detail = append(e.Detail, kv)
		}
	}
	switch {
	case u.Refused != "":
		e.Kind, e.Decision, e.Op, e.Reason = audit.KindDeny, "deny", "request", u.Refused
		g.by.Refused("request to "+quoting.Quote(at)+": "+quoting.ASCII(u.Refused), false)
	case u.Strayed:
		e.Decision, e.Reason = "deny", "its placeholder stood where it does not belong, and was left there"
		g.by.Refused("the placeholder of credential "+u.Secret+" was sent to "+quoting.Quote(at)+
			", where it does not belong", false)
	case u.Failed != "":
		e.Kind, e.Decision = audit.KindError, ""
		g.by.Refused("request to "+quoting.Quote(at)+": "+quoting.ASCII(u.Failed), true)
	}
	g.note(e)
}

func number(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// note writes to the record, or keeps it until there is one.
func (s *Service) note(e audit.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.log != nil:
		_, _ = s.log.Note(e)
	case !s.closed && len(s.early) < maxEarly:
		s.early = append(s.early, e)
	}
}

// maxEarly bounds what is kept: there is hardly anything before the program runs.
const maxEarly = 100

// Record has the grants and every use written down.
func (g *Grants) Record(log *audit.Writer) {
	if g == nil {
		return
	}
	for _, x := range g.list {
		_, _ = log.Note(audit.Event{Kind: audit.KindGrant, UID: os.Getuid(), Op: "use", Decision: "allow", Life: "session",
			Reason: "credential " + x.Name + ", " + x.Origin.String()})
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.log = log
	for _, e := range g.early {
		_, _ = log.Note(e)
	}
	g.early = nil
}

// Close ends sbx-proxy. What it has reported is on record then.
func (g *Grants) Close() {
	if g == nil || g.ended == nil {
		return
	}
	g.mu.Lock()
	g.over = true
	g.mu.Unlock()
	g.conf.Close()
	select {
	case <-g.ended:
	case <-time.After(endPatience):
		_ = g.proc.Kill()
		<-g.ended
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.log, g.closed = nil, true
}

const endPatience = 2 * time.Second

// ownGroup keeps signals of the terminal from it: those are for the program inside.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
