package audit

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
)

// hostile holds what paths of an attacker look like (TT-12, TT-13, M21).
var hostile = []string{
	"/a\xff", "/a\xfe", "/a\xc0\xaf", "/a\xed\xa0\x80", "/a\xed\xb2\x80",
	"/other/x\"}\n{\"time\":\"2026-01-01\",\"event\":\"approve\",\"path\":\"/",
	"\u202etxt.yek\u202c", "\u009b2J", "\x7f\x1b[2J", "\u2028\u2029\ufeff", "\r\t\x00", "\u00e9\U0001F600", "\\udcff",
	"\ufffd",
}

func event(path string) Event {
	return Event{Seq: 7, Time: time.Date(2026, 3, 4, 5, 6, 7, 89, time.UTC), Session: "k3f9", Kind: KindAsk, ID: "q1",
		UID: 1000, PID: 42,
		Exe: "/usr/bin/cat", Cwd: "/", Op: "read", Path: path, Host: "h", Port: 443, Decision: "deny", Rule: "r",
		RuleOrigin: "o", Scope: "file",
		Life: "once", Reason: "x", Errno: "EACCES", LatencyUS: -5, PlanHash: "abc", Detail: []KV{{"k", path}, {"a", ""}},
		Prev: Genesis}
}

func TestRoundTrip(t *testing.T) {
	seen := map[string]string{}
	for _, p := range hostile {
		e := event(p)
		line := e.seal(nil)
		for _, c := range line[:len(line)-1] {
			if c < 0x20 || c >= 0x7f {
				t.Fatalf("%q: raw byte %#x in the line", p, c)
			}
		}
		if strings.Count(string(line), "\n") != 1 || !json.Valid(line) {
			t.Fatalf("%q: not one JSON line: %s", p, line)
		}
		if o, dup := seen[string(appendString(nil, p))]; dup {
			t.Fatalf("%q and %q are written alike", p, o)
		}
		seen[string(appendString(nil, p))] = p
		got, err := DecodeLine(line[:len(line)-1])
		if err != nil {
			t.Fatalf("%q: %v", p, err)
		}
		if !reflect.DeepEqual(got, e) {
			t.Fatalf("got  %#v\nwant %#v", got, e)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	e := event("/x")
	good := strings.TrimSuffix(string(e.seal(nil)), "\n")
	for name, edit := range map[string][2]string{
		"duplicate":     {`"op":"read"`, `"op":"read","op":"read"`},
		"unknown":       {`"op":"read"`, `"ops":"read"`},
		"case":          {`"op":"read"`, `"Op":"read"`},
		"space":         {`"op":"read"`, `"op": "read"`},
		"order":         {`"uid":1000,"pid":42`, `"pid":42,"uid":1000`},
		"other escape":  {`"op":"read"`, `"op":"\u0072ead"`},
		"leading zero":  {`"uid":1000`, `"uid":01000`},
		"out of range":  {`"uid":1000`, `"uid":99999999999999999999`},
		"empty member":  {`"op":"read"`, `"op":""`},
		"zero member":   {`"uid":1000`, `"uid":0`},
		"raw control":   {`"op":"read"`, "\"op\":\"re\x01d\""},
		"raw utf8":      {`"op":"read"`, `"op":"é"`},
		"split utf8":    {`"op":"read"`, `"op":"\udcc3\udca9"`},
		"upper hex":     {`"op":"read"`, `"op":"\u00E9"`},
		"lone high":     {`"op":"read"`, `"op":"\ud800"`},
		"lone low":      {`"op":"read"`, `"op":"\udc01"`},
		"twice in data": {`"a":""`, `"k":""`},
		"trailing":      {`"}`, `"} `},
		"zone":          {`07.000000089Z`, `07.000000089+00:00`},
		"kind":          {`"kind":"ask"`, `"kind":"A sk"`},
	} {
		bad := strings.Replace(good, edit[0], edit[1], 1)
		if bad == good {
			t.Fatalf("%s: the edit did nothing to %s", name, good)
		}
		if _, err := DecodeLine([]byte(bad)); err == nil {
			t.Errorf("%s: accepted %s", name, bad)
		} else if !strings.HasPrefix(err.Error(), "decoding record: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestClip(t *testing.T) {
	long := strings.Repeat("a", 5000)
	e := Event{Path: long, Detail: []KV{{"k", long}}}
	e.clip()
	if len(e.Path) > maxField || !strings.Contains(e.Path, "sha256") || e.Path != e.Detail[0].V {
		t.Fatalf("clipped to %d: %q", len(e.Path), e.Path[len(e.Path)-120:])
	}
	full := strings.Repeat("a", maxField)
	if clip(full) != full {
		t.Fatal("a path of PATH_MAX was clipped")
	}
}

func FuzzDecodeLine(f *testing.F) {
	for _, p := range hostile {
		e := event(p)
		l := e.seal(nil)
		f.Add(l[:len(l)-1])
	}
	f.Add([]byte(`{"seq":1,"time":"2026-01-01T00:00:00Z","session":"s","kind":"start","prev":"","hash":""}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		e, err := DecodeLine(line)
		if err != nil {
			return
		}
		if got := AppendLine(nil, &e); string(got) != string(line)+"\n" {
			t.Fatalf("accepted %q, writes %q", line, got)
		}
	})
}

func FuzzString(f *testing.F) {
	for _, p := range hostile {
		f.Add(p)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p := parser{b: appendString(nil, s)}
		if got := p.str(); got != s || p.err != nil {
			t.Fatalf("%q became %q (%v)", s, got, p.err)
		}
	})
}
