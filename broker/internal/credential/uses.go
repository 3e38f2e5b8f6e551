//go:build linux

package credential

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"strconv"

	"sbx.example/sbx/audit"
	"sbx.example/sbx/broker/internal/quoting"
	"sbx.example/sbx/shared/proxied"
)

// maxReport bounds a line of sbx-proxy's.
const maxReport = 1 << 20

// readReports carries out what sbx-proxy reports.
func (g *Grants) readReports(in io.Reader, ready chan<- proxied.Report) error {
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
		case r.Issued != nil:
			g.about(r.Issued.Secret, func(l *login) proxied.Tokens { return g.keep(l, r.Issued.Sealed) })
		case r.Newer != nil:
			g.about(r.Newer.Secret, func(l *login) proxied.Tokens { return g.newer(l, r.Newer) })
		case r.May != nil:
			go g.answer(*r.May)
		case r.Cut:
			g.cutDone()
		default:
			select {
			case ready <- r:
			default:
			}
		}
	}
	return lines.Err()
}

// use records one request.
func (g *Grants) use(u *proxied.Use) {
	if u.Spent != nil {
		g.mu.Lock()
		if g.spent == nil {
			g.spent = map[string]proxied.Spent{}
		}
		g.spent[u.Endpoint] = *u.Spent
		g.mu.Unlock()
		return
	}
	at := server(u.Host, u.Port)
	e := audit.Event{Kind: audit.KindCredential, UID: os.Getuid(), Op: "use", Host: u.Host, Port: int(u.Port),
		Decision: "allow", Reason: u.Failed}
	for _, kv := range []audit.KV{{K: "credential", V: u.Secret},
		{K: "endpoint", V: u.Endpoint}, {K: "method", V: u.Method},
		{K: "status", V: number(u.Status)}} {
		if kv.V != "" {
			e.Detail = append(e.Detail, kv)
		}
	}
	if u.Issued {
		e.Op = "issue"
	}
	if u.Shared {
		e.Reason = "nobody was asked: another request has just got the same"
	}
	switch {
	case u.Decoy != "":
		e.Kind, e.Decision, e.Op, e.Reason = audit.KindDeny, "deny", "request", u.Refused
		g.by.Marked(u.Decoy, at)
	case u.Refused != "":
		e.Kind, e.Decision, e.Op, e.Reason = audit.KindDeny, "deny", "request", u.Refused
		g.by.Refused("request to "+quoting.Quote(at)+": "+quoting.ASCII(u.Refused), false)
	case u.Unsigned != "":
		e.Decision, e.Reason = "deny", "it was not signed anew: "+u.Unsigned
		g.by.Refused("a request to "+quoting.Quote(at)+" was not signed with credential "+u.Secret+": "+
			quoting.ASCII(u.Unsigned), false)
	case u.Strayed:
		e.Decision, e.Reason = "deny", "its placeholder stood where it does not belong, and was left there"
		g.by.Refused("the placeholder of credential "+u.Secret+" was sent to "+quoting.Quote(at)+
			", where it does not belong", false)
	case u.Failed != "":
		e.Kind, e.Decision = audit.KindError, ""
		g.by.Refused("request to "+quoting.Quote(at)+": "+quoting.ASCII(u.Failed), true)
	case u.Left != "":
		e.Op, e.Decision, e.Reason = "answer", "", "nobody waits for it: "+u.Left
	case !u.Sent && !u.Issued:
		e.Op, e.Decision = "answer", ""
	}
	if e.Decision == "allow" || e.Op == "answer" {
		g.note(e)
	} else { // a program can make as many of these as it likes
		g.noteBy(e, (*audit.Writer).Often)
	}
}

func number(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

func count(n int64) string { return strconv.FormatInt(n, 10) }
