//go:build linux

package nixdaemon

import (
	"errors"
	"fmt"
	"net"
	"path"
)

const (
	stderrStart  = 0x53545254
	stderrStop   = 0x53544f50
	stderrResult = 0x52534c54

	opQueryMissing = 40
)

// away says which derivation of a build would leave the daemon's sandbox. What would be built at all the daemon itself
// says, on a connection with the same options.
func (s *client) away(targets []string, again bool) (string, error) {
	drvs, err := named(targets)
	if err != nil {
		return "", err
	}
	if !again {
		drvs = nil
	}
	a, err := s.asker()
	if err != nil {
		return "", fmt.Errorf("asking the daemon what would be built: %w", err)
	}
	defer s.p.Leave(a.conn)
	missing, unknown, err := a.missing(targets)
	if err != nil {
		return "", fmt.Errorf("asking the daemon what would be built: %w", err)
	}
	if len(unknown) > 0 { // it could come while the daemon looks
		return "", errors.New(path.Base(unknown[0]) + " is not in the store")
	}
	return s.p.opt.leaves(append(drvs, missing...))
}

// asker asks the daemon in the name of a client.
type asker struct {
	conn net.Conn
	in   *reader
}

func (s *client) asker() (*asker, error) {
	conn, err := s.p.Dial(s.p.opt.Daemon)
	if err != nil {
		return nil, err
	}
	a := &asker{conn, newReader(conn)}
	if err := a.greet(s.version, s.set); err != nil {
		s.p.Leave(conn)
		return nil, err
	}
	return a, nil
}

func (a *asker) greet(version uint64, options [][]byte) error {
	if _, err := a.conn.Write(appendNum(appendNum(appendNum(appendNum(nil, magicClient), version), 0), 0)); err != nil {
		return err
	}
	magic := a.in.num()
	a.in.num() // the version of the daemon, which is at least that of the client
	if a.in.err == nil && magic != magicDaemon {
		return errShape
	}
	if version >= 1<<8|33 {
		a.in.str() // of the program
	}
	if version >= 1<<8|35 {
		a.in.num() // whether it trusts its caller
	}
	err := a.quiet()
	for i := 0; i < len(options) && err == nil; i++ {
		if _, err = a.conn.Write(options[i]); err == nil {
			err = a.quiet()
		}
	}
	return err
}

// quiet reads what the daemon says until it has done what it was asked.
func (a *asker) quiet() error {
	for a.in.err == nil {
		a.in.take()
		switch a.in.num() {
		case stderrLast:
			return a.in.err
		case stderrNext:
			a.in.str()
		case stderrStart:
			for range 3 { // number, level, kind
				a.in.num()
			}
			a.in.str()
			a.values()
			a.in.num() // what it is part of
		case stderrStop:
			a.in.num()
		case stderrResult:
			a.in.num()
			a.in.num()
			a.values()
		default:
			if a.in.err == nil {
				a.in.err = errors.New("it refused")
			}
		}
	}
	return a.in.err
}

// values skips the details of a report.
func (a *asker) values() {
	for n := a.in.num(); n > 0 && a.in.err == nil; n-- {
		if a.in.num() == 0 {
			a.in.num()
		} else {
			a.in.str()
		}
	}
}

// missing are the derivations that would be built, and the paths that nobody has.
func (a *asker) missing(targets []string) (build, unknown []string, err error) {
	if _, err := a.conn.Write(appendStrs(appendNum(nil, opQueryMissing), targets)); err != nil {
		return nil, nil, err
	}
	if err := a.quiet(); err != nil {
		return nil, nil, err
	}
	a.in.take()
	build = a.in.strs()
	a.in.strs() // what would be fetched
	unknown = a.in.strs()
	return build, unknown, a.in.err
}
