//go:build linux

package network

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"sbx.example/sbx/broker/internal/network/nameserver"
	"sbx.example/sbx/broker/internal/policy/peer"
)

// resolver answers the sandbox's questions about names: those that are allowed from the host's servers, all others with
// NXDOMAIN. No question about a name that is not allowed leaves, and no answer is given whose addresses are not open.
type resolver struct {
	up     *nameserver.Servers
	judge  func(context.Context, peer.Host, who) judgement // blocks while somebody is asked
	admit  func([]netip.Addr, judgement, time.Duration) error
	shut   func(name string) // closes what a name opened
	closed func(netip.Addr) bool
	why    func(netip.Addr) string // one is closed
	denied func(peer.Host) bool    // by a rule that names it
	note   func(Event)
	by     func(who) Program // who was refused
	served []string          // names that lead to ServedAddress

	mu       sync.Mutex
	cache    map[key]*entry
	names    map[netip.Addr][]string // which names led to an address, the last one at the end
	openings map[opening]openedFor   // what each name opened
	budget   map[string]*bucket
	sent     map[string]bool // names that servers outside were asked about
}

// who asks: the source of the question inside.
type who struct {
	src   netip.AddrPort
	proto string
}

// judgement is what a name may be used for.
type judgement struct {
	allow  bool
	ports  []ports
	wild   string // the part of a wildcard pattern that the name lies below
	once   bool
	until  time.Time // when an answer ends by itself
	listed bool      // without a question
	reason string
	made   int // see rules.admit
	// aliases are the names that the name leads to, and to whose addresses it does. They open nothing, but rules about
	// them hold there.
	aliases []string
}

// life is for how long an address of an answer is open whose records live for ttl seconds: no longer than what a person
// has said.
func (j judgement) life(ttl uint32) time.Duration {
	life := time.Duration(ttl)*time.Second + grace
	switch {
	case j.once:
		return min(life, grace)
	case !j.until.IsZero():
		return max(time.Second, min(life, time.Until(j.until)))
	}
	return life
}

type key struct {
	name string
	typ  dnsmessage.Type
}

// entry is one answer, or one that is being waited for.
type entry struct {
	done    chan struct{}
	a       answer
	expires time.Time
	ports   []ports
	failed  bool
}

const (
	maxEntries = 4096
	// grace is how much longer than the answer's life an address stays open: programs connect a little after they have
	// looked up.
	grace    = 30 * time.Second
	patience = 3 * time.Second
)

func newResolver() *resolver {
	return &resolver{cache: map[key]*entry{}, names: map[netip.Addr][]string{}, openings: map[opening]openedFor{},
		budget: map[string]*bucket{}, sent: map[string]bool{}}
}

// answer answers one message; nil is no answer at all.
func (r *resolver) answer(ctx context.Context, query []byte, w who) []byte {
	var p dnsmessage.Parser
	h, err := p.Start(query)
	if err != nil || h.Response {
		return nil
	}
	questions, err := p.AllQuestions()
	if err != nil || len(questions) != 1 || h.OpCode != 0 {
		return pack(h, questions, answer{code: dnsmessage.RCodeFormatError})
	}
	q := questions[0]
	return pack(h, questions, r.resolve(ctx, q, w))
}

func (r *resolver) resolve(ctx context.Context, q dnsmessage.Question, w who) answer {
	refused := answer{code: dnsmessage.RCodeNameError}
	name, err := peer.Parse(q.Name.String())
	if err != nil || name.Name == "" || q.Class != dnsmessage.ClassINET {
		return refused
	}
	if a, ok := r.ours(name.Name, q); ok {
		return a
	}
	k := key{name.Name, q.Type}
	if a, ok := r.cached(k); ok {
		return a
	}
	j := r.judge(ctx, name, w)
	if !j.allow {
		return refused
	}
	if q.Type == typeHTTPS || q.Type == typeSVCB {
		return answer{} // it could lead to other names, addresses and ports
	}
	e, mine := r.enter(k)
	if !mine {
		select {
		case <-e.done:
			if !e.failed {
				return r.aged(e)
			}
		case <-ctx.Done():
		}
		return answer{code: dnsmessage.RCodeServerFailure}
	}
	e.failed = true
	defer func() {
		if e.failed || j.once {
			r.mu.Lock()
			delete(r.cache, k)
			r.mu.Unlock()
		}
		close(e.done)
	}()
	if j.wild != "" && !r.spend(j.wild) {
		r.note(Event{Op: "lookup", Host: name.Name, By: r.by(w), Denied: true, Reason: "too many new names below " + j.wild +
			": names themselves can carry data"})
		return answer{code: dnsmessage.RCodeServerFailure}
	}
	a, ok := r.fetch(ctx, q, name, w)
	if !ok {
		return a
	}
	if j, err = r.open(ctx, name, w, a, j); !j.allow {
		return refused
	} else if err != nil {
		r.note(Event{Op: "lookup", Host: name.Name, Failed: true, Reason: err.Error()})
		return answer{code: dnsmessage.RCodeServerFailure}
	}
	r.mu.Lock()
	e.a, e.expires = a, time.Now().Add(min(time.Duration(a.ttl)*time.Second, j.life(a.ttl)))
	e.ports, e.failed = j.ports, false
	r.mu.Unlock()
	return a
}

// ours answers what servers outside are not asked.
func (r *resolver) ours(name string, q dnsmessage.Question) (answer, bool) {
	switch q.Type {
	case dnsmessage.TypeA, dnsmessage.TypeAAAA, dnsmessage.TypeCNAME, dnsmessage.TypeMX, dnsmessage.TypeNS,
		dnsmessage.TypeSOA, dnsmessage.TypeSRV, dnsmessage.TypeTXT, dnsmessage.TypePTR, typeHTTPS, typeSVCB:
	default:
		return answer{code: dnsmessage.RCodeNotImplemented}, true
	}
	if a, ok := local(name, q); ok {
		return a, true
	}
	if slices.Contains(r.served, name) {
		return servedAt(q), true
	}
	return answer{}, false
}

// Types that dnsmessage has no name for.
const (
	typeSVCB  = dnsmessage.Type(64)
	typeHTTPS = dnsmessage.Type(65)
)

// slow says whether a server may still answer, the next time. Where none can be reached there are no names: libraries
// take "server failure" for a packet that was lost, and wait for another answer.
func slow(err error) bool {
	var e net.Error
	return errors.As(err, &e) && e.Timeout() || errors.Is(err, context.Canceled) ||
		errors.Is(err, context.DeadlineExceeded)
}

// fetch asks upstream.
func (r *resolver) fetch(ctx context.Context, q dnsmessage.Question, name peer.Host, w who) (answer, bool) {
	failed := answer{code: dnsmessage.RCodeServerFailure}
	r.mu.Lock()
	if len(r.sent) < maxEntries {
		r.sent[name.Name] = true
	}
	r.mu.Unlock()
	q.Name = dnsmessage.MustNewName(name.Name + ".") // upper and lower case can carry data; a name has at most 253 bytes
	b, err := r.up.Ask(ctx, q)
	if err != nil {
		r.note(Event{Op: "lookup", Host: name.Name, Failed: true, Reason: err.Error()})
		if !slow(err) {
			return answer{code: dnsmessage.RCodeNameError}, false
		}
		return failed, false
	}
	a, err := readAnswer(b, q, r.closed)
	if err != nil {
		return failed, false
	}
	for i, c := range a.chain {
		h, err := peer.Parse(c)
		if err != nil || r.denied(h) {
			r.note(Event{Op: "lookup", Host: name.Name, By: r.by(w), Denied: true, Reason: "it is an alias of " +
				strings.ToLower(c) + ", which a rule denies"})
			return answer{code: dnsmessage.RCodeNameError}, false
		}
		a.chain[i] = h.Name
	}
	if len(a.refused) > 0 {
		r.note(Event{Op: "lookup", Host: name.Name, Addr: a.refused[0], By: r.by(w), Denied: true,
			Reason: "it leads to " + r.why(a.refused[0])})
		if len(a.addrs) == 0 {
			return answer{code: dnsmessage.RCodeNameError}, false
		}
	}
	return a, true
}

// open opens what an answer holds before anybody hears it, by a judgement that stands: while a server or a person was
// waited for, another may have become due.
func (r *resolver) open(ctx context.Context, name peer.Host, w who, a answer, j judgement) (judgement, error) {
	for {
		j.aliases = a.chain
		life := j.life(a.ttl)
		r.recordOpened(name.Name, a.addrs, j, life) // before the address is open
		err := r.admit(a.addrs, j, life)
		if err == nil {
			break
		}
		if err != errRemade {
			return j, err
		}
		if j = r.judge(ctx, name, w); !j.allow {
			r.shut(name.Name)
			return j, nil
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.names) > maxEntries {
		clear(r.names)
	}
	for _, ip := range a.addrs {
		list := slices.DeleteFunc(r.names[ip], func(n string) bool { return n == name.Name })
		r.names[ip] = append(list[max(0, len(list)-maxShared):], name.Name)
	}
	return j, nil
}

// maxShared bounds the names that are told apart at one address.
const maxShared = 8

// namesOf are the names that led to an address, the last one at the end; one more than maxShared are too many.
func (r *resolver) namesOf(a netip.Addr) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.names[a])
}

// nameOf is the last name that led to an address.
func (r *resolver) nameOf(a netip.Addr) string {
	if list := r.namesOf(a); len(list) > 0 {
		return list[len(list)-1]
	}
	return ""
}

func (r *resolver) cached(k key) (answer, bool) {
	r.mu.Lock()
	e := r.cache[k]
	if e == nil || e.failed || e.expires.IsZero() || !time.Now().Before(e.expires) {
		r.mu.Unlock()
		return answer{}, false
	}
	r.mu.Unlock()
	return r.aged(e), true
}

// aged is an answer of the cache with the life that it has left.
func (r *resolver) aged(e *entry) answer {
	a := e.a
	left := uint32(max(0, time.Until(e.expires)/time.Second))
	a.records = make([]dnsmessage.Resource, len(e.a.records))
	for i, rec := range e.a.records {
		rec.Header.TTL = min(rec.Header.TTL, left)
		a.records[i] = rec
	}
	return a
}

// enter returns the entry of a question, and whether the caller is the one to fill it.
func (r *resolver) enter(k key) (*entry, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e := r.cache[k]; e != nil && (e.expires.IsZero() || time.Now().Before(e.expires)) {
		return e, false
	}
	if len(r.cache) >= maxEntries {
		for old, e := range r.cache {
			if !e.expires.IsZero() {
				delete(r.cache, old)
			}
		}
	}
	e := &entry{done: make(chan struct{})}
	r.cache[k] = e
	return e, true
}

// forgetAnswers drops what servers have said about a name.
func (r *resolver) forgetAnswers(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for k, e := range r.cache {
		if k.name == name && !e.expires.IsZero() {
			delete(r.cache, k)
		}
	}
}

// local answers for the namespace's own names.
func local(name string, q dnsmessage.Question) (answer, bool) {
	if name != "localhost" && !strings.HasSuffix(name, ".localhost") {
		return answer{}, false
	}
	h := dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class, TTL: 60}
	switch q.Type {
	case dnsmessage.TypeA:
		return answer{records: []dnsmessage.Resource{{Header: h, Body: &dnsmessage.AResource{A: [4]byte{127, 0, 0, 1}}}}},
			true
	case dnsmessage.TypeAAAA:
		return answer{records: []dnsmessage.Resource{{Header: h, Body: &dnsmessage.AAAAResource{
			AAAA: netip.IPv6Loopback().As16()}}}}, true
	}
	return answer{}, true
}

func pack(h dnsmessage.Header, questions []dnsmessage.Question, a answer) []byte {
	m := dnsmessage.Message{Header: dnsmessage.Header{ID: h.ID, Response: true, OpCode: h.OpCode,
		RecursionDesired: h.RecursionDesired, RecursionAvailable: true, RCode: a.code},
		Questions: questions, Answers: a.records}
	b, err := m.Pack()
	if err != nil {
		m.Answers, m.RCode = nil, dnsmessage.RCodeServerFailure
		if b, err = m.Pack(); err != nil {
			return nil
		}
	}
	return b
}

// bucket limits how many new names below a wildcard are looked up: names can carry data out.
type bucket struct {
	left float64
	at   time.Time
}

const (
	bucketSize = 40
	bucketRate = 0.5 // a second
)

func (r *resolver) spend(zone string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	b := r.budget[zone]
	now := time.Now()
	if b == nil {
		b = &bucket{bucketSize, now}
		r.budget[zone] = b
	}
	return b.spend(bucketSize, bucketRate)
}

// spend takes one out, if one is left of size, which fill up at rate a second.
func (b *bucket) spend(size, rate float64) bool {
	now := time.Now()
	b.left = min(size, b.left+now.Sub(b.at).Seconds()*rate)
	b.at = now
	if b.left < 1 {
		return false
	}
	b.left--
	return true
}
