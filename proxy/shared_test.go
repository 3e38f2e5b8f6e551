//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"filippo.io/age"

	"sbx.example/sbx/shared/proxied"
	"sbx.example/sbx/shared/turn"
)

// keeper does what sbx does for a login of one session.
type keeper struct {
	turn   *turn.Turn
	key    *age.X25519Identity
	full   atomic.Bool // nothing can be kept
	locked atomic.Bool // what is kept cannot be opened
	hold   chan struct{}
	asked  atomic.Int64 // for newer tokens
}

func (k *keeper) issued(i *proxied.Issued) *proxied.Tokens {
	if k.hold != nil {
		<-k.hold
	}
	if k.full.Load() {
		return &proxied.Tokens{Secret: i.Secret, Why: "no space left on device"}
	}
	m, err := k.turn.Keep(i.Sealed)
	return k.say(&proxied.Tokens{Secret: i.Secret, Mark: m}, err)
}

func (k *keeper) newer(n *proxied.Newer) *proxied.Tokens {
	k.asked.Add(1)
	sealed, m, err := k.turn.Kept()
	t := &proxied.Tokens{Secret: n.Secret, Mark: m}
	if err == nil && k.locked.Load() {
		err = errLocked
	}
	if err == nil && m != n.Have && m != "" {
		var text []byte
		r, failed := age.Decrypt(bytes.NewReader(sealed), k.key)
		if text, err = io.ReadAll(must(r, failed)); err == nil {
			t.Sealed, err = sealTo(must(age.ParseX25519Recipient(n.Key)), text)
		}
	}
	return k.say(t, err)
}

func (k *keeper) say(t *proxied.Tokens, err error) *proxied.Tokens {
	if t.Ended = errors.Is(err, turn.ErrEnded); err != nil && !t.Ended {
		t.Why = err.Error()
	}
	return t
}

// login is one of a session of the lab's, with what was kept of it.
func (l *lab) login(s proxied.Secret) *login {
	l.t.Helper()
	x, err := turn.Open(l.dir, s.Name)
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { x.Close() })
	l.keeper = &keeper{turn: x, key: l.key}
	f := must(x.Share())
	l.t.Cleanup(func() { f.Close() })
	sealed, m, err := x.Kept()
	if err != nil {
		l.t.Fatal(err)
	}
	g := &login{Secret: s, out: l.p.out, to: l.key.Recipient(), mark: m, shared: must(newShared(f, l.p.orders.over))}
	if g.begin(nil); len(sealed) > 0 {
		if err := g.take(must(age.Decrypt(bytes.NewReader(sealed), l.key))); err != nil {
			l.t.Fatal(err)
		}
	}
	return g
}

// another is a second session with the same login.
func (l *lab) another() *lab {
	l.t.Helper()
	n := &lab{t: l.t, servers: l.servers, key: l.key, dir: l.dir, up: l.up, conf: l.conf}
	n.start()
	return n
}

// rotating is a token endpoint that rotates refresh tokens and refuses those that are spent, and the API that takes the
// last token.
type rotating struct {
	mu      sync.Mutex
	n       int
	asked   int
	spent   int                   // times that it was asked with a spent one
	meeting func(r *http.Request) // called while it is asked
}

func (e *rotating) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e.mu.Lock()
	meeting := e.meeting
	e.mu.Unlock()
	if meeting != nil && r.URL.Path == "/oauth/token" {
		meeting(r)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if r.URL.Path != "/oauth/token" {
		if r.Header.Get("Authorization") != fmt.Sprintf("Bearer REAL-access-%d", e.n) {
			w.WriteHeader(http.StatusUnauthorized)
		}
		return
	}
	e.asked++
	form, _ := url.ParseQuery(r.Header.Get("X-Body"))
	if token := form.Get("refresh_token"); token != "" && token != fmt.Sprintf("REAL-refresh-%d", e.n) {
		e.spent++
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"error":"invalid_grant"}`)
		return
	}
	e.n++
	_, _ = fmt.Fprintf(w, `{"access_token":"REAL-access-%d","refresh_token":"REAL-refresh-%d"}`, e.n, e.n)
}

// meet has something happen while it is asked, and returns how often it was.
func (e *rotating) meet(do func(*http.Request)) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.meeting = do
	return e.asked
}

// hold has who asks it wait: arrived says that somebody does, and answer lets him go on.
func (e *rotating) hold() (arrived, answer chan struct{}) {
	arrived, answer = make(chan struct{}), make(chan struct{})
	e.meet(func(*http.Request) { arrived <- struct{}{}; <-answer })
	return arrived, answer
}

// newShares is a lab whose token endpoint is e.
func newShares(t *testing.T, e *rotating) *lab {
	var l *lab
	l = newLogin(t, func(w http.ResponseWriter, r *http.Request) {
		o := l.servers["three.test"] // which notes bodies: this one is the last
		o.mu.Lock()
		if r.URL.Path == "/oauth/token" {
			r.Header.Set("X-Body", o.body[len(o.body)-1])
		}
		o.mu.Unlock()
		e.ServeHTTP(w, r)
	})
	return l
}

type issuedTo struct {
	Access  string `json:"access_token"`
	Refresh string `json:"refresh_token"`
}

// sign asks the token endpoint, and wants tokens.
func (l *lab) sign(body string) (got issuedTo) {
	l.t.Helper()
	status, text := l.post(form, body)
	if status != 200 || strings.Contains(text, "REAL") || json.Unmarshal([]byte(text), &got) != nil {
		l.t.Errorf("%d %s", status, text)
	}
	return got
}

func (l *lab) api(token string, want int) {
	l.t.Helper()
	if status, _, text := l.do(l.client(false), "GET", "https://one.test/x", map[string]string{"Authorization": "Bearer " +
		token}, nil); status != want {
		l.t.Errorf("the API says %d %s, want %d", status, text, want)
	}
}

// Whatever session is issued tokens, the next request of each carries them, and each refreshes with the last one.
func TestSessionsShareALogin(t *testing.T) {
	e := &rotating{}
	a := newShares(t, e)
	got := a.sign("code=x")
	b := a.another()
	c := a.another()
	for range 3 {
		for _, l := range []*lab{a, b, c, b} {
			if again := l.sign("grant_type=refresh_token&refresh_token=" + got.Refresh); again != got {
				t.Errorf("another placeholder: %+v, had %+v", again, got)
			}
			for _, l := range []*lab{c, a, b} {
				l.api(got.Access, 200)
			}
		}
	}
	// signing in anew, in one that was there before
	c.sign("code=y")
	a.api(got.Access, 200)
	if e.spent > 0 {
		t.Errorf("it was asked with %d spent tokens", e.spent)
	}
}

// Both begin without a login, and one signs in: its placeholders are those of the other one.
func TestSessionsBeginWithoutALogin(t *testing.T) {
	a := newShares(t, &rotating{})
	b := a.another()
	got := a.sign("code=x")
	b.api(got.Access, 200)
	b.api(b.p.logins[0].tokens[0].Placeholder, 200) // control: it has another one no more
	if again := b.sign("grant_type=refresh_token&refresh_token=" + got.Refresh); again != got {
		t.Errorf("%+v, had %+v", again, got)
	}
}

// A placeholder that a session hears of only while it looks at a request is put in where the login's rules allow it.
func TestRulesOfALoginThatIsNew(t *testing.T) {
	for method, want := range map[string]string{"GET": "Bearer REAL-access-", "POST": "Bearer sbx-placeholder-"} {
		a := newShares(t, &rotating{})
		a.conf.Sites[0].Places = append(a.conf.Sites[0].Places, proxied.Place{Secret: "two", Header: "X-Two", Format: "{}"})
		b := a.another()
		got := a.sign("code=x")
		b.do(b.client(false), method, "https://one.test/x", map[string]string{"Authorization": "Bearer " + got.Access}, nil)
		list := a.servers["one.test"].requests()
		if sent := list[len(list)-1].Header.Get("Authorization"); !strings.HasPrefix(sent, want) {
			t.Errorf("%s: %s", method, sent)
		}
	}
}

// The same request, of many programs at once, asks the token endpoint once: those that wait get what the first one got.
// Others are made one after the other, each with the token that is the last then.
func TestTurns(t *testing.T) {
	e := &rotating{}
	a := newShares(t, e)
	got := a.sign("code=x")
	labs := []*lab{a, a.another(), a.another()}
	const each = 4
	for _, same := range []bool{true, false} {
		together := make(chan struct{})
		var asks atomic.Bool
		before := e.meet(func(*http.Request) { asks.Store(true); <-together }) // no answer before all have asked
		var all sync.WaitGroup
		for i := range each * len(labs) {
			l, body := labs[i%len(labs)], "refresh_token="+got.Refresh+"&grant_type=refresh_token"
			if !same {
				body += fmt.Sprintf("&n=%d", i)
			}
			all.Go(func() { l.sign(body) })
		}
		eventually(t, "all wait but one", func() (is bool) {
			n := 0
			for _, l := range labs {
				n += len(l.p.logins[0].places)
			}
			return asks.Load() && n == each*len(labs)-1
		})
		close(together)
		all.Wait()
		want := 1
		if !same {
			want = each * len(labs)
		}
		if n := e.asked - before; n != want || e.spent > 0 {
			t.Errorf("the same: %v, asked %d times (want %d), %d of them with a spent token", same, n, want, e.spent)
		}
		for _, l := range labs {
			l.api(got.Access, 200)
		}
	}
	a.used("what was asked once", func(u proxied.Use) bool { return u.Shared && u.Issued })
}

func eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("in vain: " + what)
		}
	}
}

// A turn is left where its request is refused, where its client goes, and where the endpoint breaks off. A client that
// goes does not take the answer with it.
func TestTurnsAreLeft(t *testing.T) {
	e := &rotating{}
	a := newShares(t, e)
	got := a.sign("code=x")
	b := a.another()
	arrived, answer := e.hold()
	ctx, leave := context.WithCancel(context.Background())
	gone := make(chan error)
	go func() {
		r := must(http.NewRequestWithContext(ctx, "POST", tokenURL, strings.NewReader("refresh_token="+got.Refresh)))
		r.Header.Set("Content-Type", form)
		_, err := a.client(false).Do(r)
		gone <- err
	}()
	<-arrived
	leave()
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	e.meet(nil)
	answer <- struct{}{}
	again := b.sign("refresh_token=" + got.Refresh) // waits, and has what the other was issued
	b.api(again.Access, 200)
	a.api(again.Access, 200)
	e.meet(func(*http.Request) { panic(http.ErrAbortHandler) })
	if status, text := a.post(form, "code=x"); status != 502 {
		t.Errorf("%d %s", status, text)
	}
	e.meet(nil)
	b.sign("refresh_token=" + got.Refresh)
}

// Requests that wait for their turn have a bound, and those beyond it are told so.
func TestTooManyWait(t *testing.T) {
	e := &rotating{}
	a := newShares(t, e)
	b := a.another()
	if mine, err := b.keeper.turn.Take(); err != nil || !mine {
		t.Fatal(mine, err)
	}
	var all sync.WaitGroup
	x := a.p.logins[0]
	for range maxWaiting {
		all.Go(func() { a.sign("code=x") })
	}
	eventually(t, "they wait", func() bool { return len(x.places) == maxWaiting })
	if status, text := a.post(form, "code=x"); status != 503 || !strings.Contains(text, "too many requests wait") {
		t.Errorf("%d %s", status, text)
	}
	_ = b.keeper.turn.Leave()
	all.Wait()
}

// What one token endpoint has issued is not for another one, to which the settings were changed by hand.
func TestAnotherTokenEndpoint(t *testing.T) {
	l := newShares(t, &rotating{})
	got := l.sign("grant_type=authorization_code")
	l.api(got.Access, http.StatusOK)
	sealed, _, err := l.keeper.turn.Kept()
	if err != nil {
		t.Fatal(err)
	}
	s := l.p.login("me").Secret
	was := s.Login
	for _, s.Login = range []string{was, "https://other.test/oauth/token"} {
		next := &login{Secret: s}
		if err := next.take(must(age.Decrypt(bytes.NewReader(sealed), l.key))); err != nil {
			t.Fatal(err)
		}
		if has := next.tokens[0].Value != ""; has != (s.Login == was) {
			t.Errorf("%s: it has what was issued: %v", s.Login, has)
		}
	}
}

// Where nothing can be kept, the session that was issued it goes on with it, and the others with what is kept.
func TestNothingCanBeKept(t *testing.T) {
	e := &rotating{}
	a := newShares(t, e)
	got := a.sign("code=x")
	b := a.another()
	a.keeper.full.Store(true)
	for range 2 {
		a.sign("refresh_token=" + got.Refresh)
		a.api(got.Access, 200)
		b.api(got.Access, 401)
	}
	a.keeper.full.Store(false)
	a.sign("refresh_token=" + got.Refresh)
	a.api(got.Access, 200)
	b.api(got.Access, 200)
}

// Where newer tokens cannot be read, nobody asks with those that may be spent. Requests do not wait for each try.
func TestNewerCannotBeRead(t *testing.T) {
	e := &rotating{}
	a := newShares(t, e)
	got := a.sign("code=x")
	b := a.another()
	b.keeper.locked.Store(true)
	a.sign("refresh_token=" + got.Refresh)
	for range 50 {
		b.api(got.Access, 401)
	}
	if n := b.keeper.asked.Load(); n > 25 {
		t.Errorf("it was tried %d times", n)
	}
	before := e.meet(nil)
	status, text := b.post(form, "refresh_token="+got.Refresh)
	if status != 503 || !strings.Contains(text, "are locked") || e.meet(nil) != before {
		t.Errorf("%d %s", status, text)
	}
	b.keeper.locked.Store(false)
	b.sign("refresh_token=" + got.Refresh)
	a.api(got.Access, 200)
	b.api(got.Access, 200)
	if e.spent > 0 {
		t.Errorf("%d were spent", e.spent)
	}
}

// A login that is removed while its token endpoint is asked is not kept, and no session has it any more.
func TestRemovedWhileItIsAsked(t *testing.T) {
	e := &rotating{}
	a := newShares(t, e)
	got := a.sign("code=x")
	b := a.another()
	e.meet(func(*http.Request) {
		if err := turn.End(a.dir, "me"); err != nil {
			t.Error(err)
		}
	})
	status, text := a.post(form, "refresh_token="+got.Refresh)
	if status != 502 || !strings.Contains(text, "was removed") {
		t.Errorf("%d %s", status, text)
	}
	before := e.meet(nil)
	for _, l := range []*lab{a, b} {
		l.api(got.Access, 403)
		if status, text := l.post(form, "code=x"); status != 403 || !strings.Contains(text, "credential me was removed") {
			t.Errorf("%d %s", status, text)
		}
		for _, x := range l.p.logins[0].secrets() {
			if x.value != "" {
				t.Errorf("%s is still known", x.Placeholder)
			}
		}
		l.api("nothing", 401) // control: the host itself is open
	}
	if e.meet(nil) != before {
		t.Error("the token endpoint was asked")
	}
	if list := must(os.ReadDir(a.dir)); len(list) > 0 {
		t.Errorf("it is back: %v", list)
	}
}

// A session that hangs while it has the turn holds others up for a while, and no longer. They ask nobody.
func TestAHolderHangs(t *testing.T) {
	e := &rotating{}
	a := newShares(t, e)
	b := a.another()
	if mine, err := b.keeper.turn.Take(); err != nil || !mine {
		t.Fatal(mine, err)
	}
	a.p.logins[0].patience = 50 * time.Millisecond
	if status, text := a.post(form, "code=x"); status != 503 || !strings.Contains(text, "has not ended in 50ms") ||
		e.meet(nil) > 0 {
		t.Errorf("%d %s", status, text)
	}
	if len(a.p.logins[0].places) > 0 || len(a.p.logins[0].asking) > 0 {
		t.Error("who has given up waits still")
	}
	_ = b.keeper.turn.Leave()
	a.sign("code=x")
}

// One session cannot keep the turn to itself by asking all the time.
func TestTurnsAreFair(t *testing.T) {
	e := &rotating{}
	a := newShares(t, e)
	got := a.sign("code=x")
	b := a.another()
	stop, all := make(chan struct{}), sync.WaitGroup{}
	for range 4 {
		all.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
					a.sign(fmt.Sprintf("code=x&n=%d", n))
				}
			}
		})
	}
	for range 5 {
		before := e.meet(nil)
		b.sign("refresh_token=" + got.Refresh)
		if n := e.meet(nil) - before; n > 8 { // its own, and those whose turn it was
			t.Errorf("%d others came first", n)
		}
	}
	close(stop)
	all.Wait()
}

// At the session's end what a token endpoint was asked is waited for, and nothing more is asked.
func TestTheEndWaitsForTokens(t *testing.T) {
	e := &rotating{}
	a := newShares(t, e)
	got := a.sign("code=x")
	b := a.another()
	arrived, answer := e.hold()
	go func() { _, _ = a.post(form, "refresh_token="+got.Refresh) }()
	<-arrived
	a.p.orders.follow(json.NewDecoder(strings.NewReader(""))) // its end is the session's
	e.meet(nil)
	close(answer)
	a.p.finish(20 * time.Second)
	eventually(t, "it is kept", func() bool { return must(b.keeper.turn.Mark()) != b.p.logins[0].mark })
	b.api(got.Access, 200)
	if status, text := a.post(form, "refresh_token="+got.Refresh); status != 503 || !strings.Contains(text, "has ended") {
		t.Errorf("%d %s", status, text)
	}
}

// A cut ends what a token endpoint is asked, though its client's leaving does not.
func TestACutEndsATurn(t *testing.T) {
	e := &rotating{}
	a := newShares(t, e)
	o := a.p.orders
	o.asks = true
	go func() { // sbx says yes to each
		for n := uint64(1); n < 3; n++ {
			for {
				o.mu.Lock()
				c := o.waiting[n]
				delete(o.waiting, n)
				o.mu.Unlock()
				if c != nil {
					c <- ""
					break
				}
				time.Sleep(time.Millisecond)
			}
		}
	}()
	arrived := make(chan struct{})
	e.meet(func(r *http.Request) { close(arrived); <-r.Context().Done() })
	said := make(chan int)
	go func() {
		status, _ := a.post(form, "code=x")
		said <- status
	}()
	<-arrived
	o.cut([]int{2})
	if status := <-said; status != 502 {
		t.Errorf("%d", status)
	}
	e.meet(nil)
	a.sign("code=x")
}
