//go:build linux

package credential

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
	"sync"
	"syscall"
	"time"

	"sbx.example/sbx/audit"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/network"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/program"
	"sbx.example/sbx/broker/internal/quoting"
	"sbx.example/sbx/shared/proxied"
)

// Service is the sbx-proxy of a run.
type Service struct {
	proc  *os.Process
	conf  *os.File // it ends when this is closed
	ended chan struct{}

	recorded  sync.WaitGroup // that all is written to the file of --record
	answering sync.WaitGroup // what sbx-proxy has asked about logins
	logins    []*login
	telling   sync.Mutex // of one order at a time

	mu    sync.Mutex
	log   *audit.Writer
	early []audit.Event            // before there was a record
	spent map[string]proxied.Spent // of endpoints
	orders
	over   bool
	closed bool
}

// start starts sbx-proxy with the sockets inside, and writes what has tools trust it.
func (g *Grants) start(listeners []*os.File, to network.Addresses, dir string) (err error) {
	conf := g.configuration(to)
	defer func() {
		if err != nil && g.ended == nil {
			g.closeLogins()
		}
	}()
	values, err := g.values(&conf)
	defer closeAll(values)
	if err != nil {
		return err
	}
	sockets, err := g.open(dir)
	defer closeAll(sockets)
	if err != nil {
		return starting(err)
	}
	ready := make(chan proxied.Report, 1)
	files := append(values, g.inOrder(listeners, sockets)...)
	if g.by.Record != "" {
		w, err := g.record()
		if err != nil {
			return &planner.Refusal{What: "--record", Err: err, Hint: "name a file that is not there yet"}
		}
		defer w.Close()
		files = append(files, w)
	}
	if err := g.launch(files, ready); err != nil {
		return starting(err)
	}
	if err := json.NewEncoder(g.conf).Encode(&conf); err != nil {
		return starting(err)
	}
	select {
	case r := <-ready:
		switch {
		case r.Ready == nil:
			return &planner.Refusal{What: "starting sbx-proxy for --with: " + quoting.ASCII(r.Failed)}
		case r.Ready.CA == "":
			return nil
		}
		return g.certificates(r.Ready.CA, dir)
	case <-time.After(startPatience):
		return starting(errors.New("it did not come up in time"))
	}
}

// record copies to the file of --record what is written to the pipe that it returns: sbx-proxy writes no files.
func (g *Grants) record() (*os.File, error) {
	f, err := os.OpenFile(g.by.Record, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		f.Close()
		return nil, err
	}
	g.recorded.Go(func() {
		defer f.Close()
		defer r.Close()
		if _, err := io.Copy(f, r); err != nil {
			g.by.Warn("--record: " + err.Error() + ": what comes now is not written down")
			_, _ = io.Copy(io.Discard, r)
		}
	})
	return w, nil
}

func starting(err error) error {
	return &planner.Refusal{What: "starting sbx-proxy for --with", Err: err}
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}

// configuration is what sbx-proxy is told.
func (g *Grants) configuration(to network.Addresses) proxied.Config {
	conf := proxied.Config{Sites: g.sites, Listeners: g.listen, Asks: g.by.Asks, Record: g.by.Record != "",
		Marks: g.by.Marks, Addresses: addresses(to),
		Roots: host.Lookup(g.by.Env, "SSL_CERT_FILE")}
	for _, x := range g.list {
		conf.Secrets = append(conf.Secrets, proxied.Secret{Name: x.Name, Placeholder: x.placeholder,
			Key: x.key, Scopes: x.AWSSigV4, Allow: x.Allow, Sealed: x.Sealed(), Keys: g.sealed, Fields: x.fields(),
			Login: x.Login})
	}
	return conf
}

// values opens what the values of all credentials can be read from, and the turns of logins.
func (g *Grants) values(conf *proxied.Config) (files []*os.File, _ error) {
	for i, x := range g.list {
		var f *os.File
		var err error
		if x.Login != "" {
			f, err = g.beginLogin(&conf.Secrets[i])
		} else {
			f, err = g.value(x)
		}
		if err != nil {
			return files, &planner.Refusal{What: "credential " + x.Name + " (" + x.Origin.String() + ")", Err: err}
		}
		files = append(files, f)
	}
	return files, nil
}

// launch starts sbx-proxy with these files behind its own two pipes. Its first report goes to ready.
func (g *Grants) launch(files []*os.File, ready chan<- proxied.Report) error {
	theirs, ours, err := os.Pipe()
	if err != nil {
		return err
	}
	defer theirs.Close()
	in, out, err := os.Pipe()
	if err != nil {
		ours.Close()
		return err
	}
	defer out.Close()
	g.proc, err = g.file.StartPowerless([]string{"serve"}, &os.ProcAttr{Dir: "/", Env: []string{program.Path},
		Files: append([]*os.File{nil, nil, nil, theirs, out}, files...), Sys: ownGroup()})
	if err != nil {
		ours.Close()
		in.Close()
		return err
	}
	g.conf, g.ended = ours, make(chan struct{})
	go g.follow(in, ready)
	return nil
}

// inOrder has the listeners stand as the configuration says: those in the sandbox's network, and sockets.
func (g *Grants) inOrder(inside, sockets []*os.File) (out []*os.File) {
	for _, l := range g.listen {
		from := &inside
		if l.Port == 0 {
			from = &sockets
		}
		out, *from = append(out, (*from)[0]), (*from)[1:]
	}
	return out
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
				return fmt.Errorf("its command failed: %w", program.Failed(err))
			}
			return nil
		})
	}
	if x.Store == policy.Keyring {
		return filled(func(w *os.File) error { return g.fetch(x.Name, w) })
	}
	f, err := os.Open(path.Join(g.sealed, x.Name+".age"))
	if errors.Is(err, os.ErrNotExist) {
		return nil, errors.New("it has no value: sbx secret add " + x.Name + " keeps one")
	}
	return f, err
}

// fetch has another sbx-proxy take a value out of the keyring: the one that serves has no way to the session bus.
func (g *Grants) fetch(name string, w *os.File) error {
	bus, err := host.SessionBus(g.by.Env)
	if err == nil && bus == "" {
		err = errors.New("it is in your keyring, and DBUS_SESSION_BUS_ADDRESS is not set")
	}
	if err != nil {
		return err
	}
	cmd := g.file.Command("fetch", bus, name) // it ends by itself when nobody answers the keyring
	var says bytes.Buffer
	cmd.Stdout, cmd.Stderr = w, &says
	if err = cmd.Run(); err == nil {
		return nil
	}
	return g.said(says.String(), err)
}

// said is the error of an sbx-proxy that has failed, in its own words if it has any.
func (g *Grants) said(text string, err error) error {
	if text = strings.TrimPrefix(strings.TrimSpace(text), "sbx: "); text != "" {
		return errors.New(quoting.ASCII(text))
	}
	return fmt.Errorf("%s: %w", g.file, err)
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
		os.WriteFile(etc(dir, bundleFile), append(bundle, ca...), 0o644), g.writeJava(ca, dir))
}

// follow hears sbx-proxy until it ends, and ends it where that cannot be.
func (g *Grants) follow(in *os.File, ready chan<- proxied.Report) {
	defer close(g.ended)
	defer g.closeLogins()
	defer in.Close()
	if err := g.readReports(in, ready); err != nil {
		_ = g.proc.Kill() // it would wait until somebody reads on
		g.by.Warn("sbx-proxy was ended, because what it reports cannot be read: " + err.Error())
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

// recorder is a way to write to the record.
type recorder func(*audit.Writer, audit.Event) (audit.Event, error)

// note writes to the record, or keeps it until there is one. Where it cannot, nothing more is used.
func (g *Grants) note(e audit.Event) { g.noteBy(e, (*audit.Writer).Note) }

func (g *Grants) noteBy(e audit.Event, write recorder) {
	g.mu.Lock()
	err := g.put(e, write)
	ends := err != nil && !g.over && g.proc != nil
	g.over = g.over || ends
	g.mu.Unlock()
	if ends {
		_ = g.proc.Kill()
		g.by.Warn("sbx-proxy was ended, because what it did cannot be recorded: " + err.Error() +
			": the hosts of credentials cannot be reached any more")
	}
}

// put is noteBy; s.mu is held.
func (s *Service) put(e audit.Event, write recorder) (err error) {
	switch {
	case s.log != nil:
		_, err = write(s.log, e)
	case s.closed:
	case len(s.early) < maxEarly:
		s.early = append(s.early, e)
	default:
		err = errors.New("there was too much of it before there was a record")
	}
	return err
}

// maxEarly bounds what is kept: there is hardly anything before the program runs.
const maxEarly = 100

// Record has the grants and every use written down.
func (g *Grants) Record(log *audit.Writer) error {
	if g == nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	var first []audit.Event
	for _, name := range g.names {
		first = append(first, audit.Event{Kind: audit.KindGrant, UID: os.Getuid(), Op: "use", Decision: "allow",
			Life: "session", Reason: name})
	}
	for _, e := range append(first, g.early...) {
		if _, err := log.Note(e); err != nil {
			return err
		}
	}
	g.log, g.early = log, nil
	return nil
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
	g.recorded.Wait()
	names, spent := g.Spent()
	for _, name := range names {
		x := spent[name]
		g.note(audit.Event{Kind: audit.KindCredential, UID: os.Getuid(), Op: "spent", Detail: []audit.KV{
			{K: "endpoint", V: name}, {K: "requests", V: count(x.Requests)}, {K: "tokens_in", V: count(x.In)},
			{K: "tokens_out", V: count(x.Out)}, {K: "cents", V: count(x.Cents)}}})
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.log, g.closed = nil, true
}

const endPatience = 2 * time.Second

// ownGroup keeps signals of the terminal from it: those are for the program inside.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
