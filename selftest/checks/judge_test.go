//go:build linux

package checks

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

func TestJudge(t *testing.T) {
	seccomp := Check{ID: "X-01", Group: Seccomp, Must: "refused", Layer: "seccomp", Want: []string{"EPERM", "ENOSYS"},
		Control: Control{Host: true}}
	sweep := seccomp
	sweep.Control.Reach = 2
	documented := seccomp
	documented.Want, documented.Control = []string{"EPERM", "OK"}, Control{None: "success is acceptable"}
	o := func(ok bool, errno string) Outcome { return Outcome{ID: "X-01", Act: "a", OK: ok, Errno: errno} }
	calls := func(a, b string) Outcome {
		return Outcome{Act: "a", Errno: "x", Detail: map[string]string{"a": a, "b": b}}
	}
	tests := []struct {
		name                           string
		c                              Check
		got, control                   Outcome
		status, state, missing, layer_ string
	}{
		{"stopped as it must", seccomp, o(false, "EPERM"), o(true, ""), Pass, Effective, "", "seccomp"},
		{"several acceptable answers", seccomp, o(false, "ENOSYS,EPERM"), o(true, ""), Pass, Effective, "", "seccomp"},
		{"attacker won", seccomp, o(true, ""), o(true, ""), Fail, Effective, "", ""},
		{"stopped for another reason", seccomp, o(false, "EINVAL"), o(true, ""), Fail, Effective, "", ""},
		{"one call of many for another reason", seccomp, o(false, "EINVAL,EPERM"), o(true, ""), Fail, Effective, "", ""},
		{"answer without errno", seccomp, o(false, ""), o(true, ""), Fail, Effective, "", ""},
		{"control fails as well", seccomp, o(false, "EPERM"), o(false, "EPERM"), Broken, Ineffective, "does not succeed", ""},
		{"control gave nothing", seccomp, o(false, "EPERM"), Outcome{}, Broken, Ineffective, "no answer", ""},
		{"failure is not hidden by a bad control", seccomp, o(true, ""), o(false, "EPERM"), Fail, Ineffective, "", ""},
		{"control impossible here", seccomp, o(false, "EPERM"), Outcome{Skip: "userns: missing"}, Pass, NoControl, "userns",
			"seccomp"},
		{"sandbox gave nothing", seccomp, Outcome{Detail: map[string]string{"note": "exit 1"}}, o(true, ""), Broken,
			Effective, "exit 1", ""},
		{"skipped", seccomp, Outcome{Act: "a", Skip: "cgroup: missing"}, o(true, ""), Skip, NoControl, "cgroup", ""},
		{"sweep reached the kernel", sweep, o(false, "EPERM"), calls("EFAULT", "EINVAL"), Pass, Effective, "", "seccomp"},
		{"sweep reached too little", sweep, o(false, "EPERM"), calls("EFAULT", "EPERM"), Broken, Ineffective,
			"does not succeed", ""},
		{"success is acceptable", documented, o(true, ""), Outcome{}, Pass, NoControl, "acceptable", "seccomp"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := Judge(tt.c, tt.got, tt.control)
			if r.Status != tt.status || r.Control != tt.state || r.Layer != tt.layer_ ||
				!strings.Contains(r.Missing, tt.missing) {
				t.Errorf("got %s, control %s, layer %q, missing %q; want %s, %s, %q, %q", r.Status, r.Control, r.Layer, r.Missing,
					tt.status, tt.state, tt.layer_, tt.missing)
			}
			if tt.status == Pass && r.Missing != tt.missing && tt.missing == "" {
				t.Errorf("missing %q on a pass", r.Missing)
			}
		})
	}
}

func TestReport(t *testing.T) {
	for _, tt := range []struct {
		statuses string
		ok       bool
	}{{"pass skip", true}, {"pass fail", false}, {"pass broken", false}, {"skip", false}, {"", false}, {"pass strange",
		false}} {
		var rs []Result
		for _, s := range strings.Fields(tt.statuses) {
			rs = append(rs, Result{Status: s})
		}
		if got := NewReport(rs).OK(); got != tt.ok {
			t.Errorf("%q: OK %v", tt.statuses, got)
		}
	}
	b, err := json.Marshal(NewReport([]Result{{ID: "A", Status: Pass}}))
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{`"checks":[{"id":"A"`, `"status":"pass"`, `"expected":`, `"got":`, `"layer":`,
		`"control":`, `"missing":`, `"summary":{"pass":1`} {
		if !bytes.Contains(b, []byte(key)) {
			t.Errorf("%s lacks %s", b, key)
		}
	}
}

func TestParse(t *testing.T) {
	out := "noise\n{\"id\":\"A\",\"act\":\"read\",\"ok\":true}\n{broken\n{\"act\":\"no " +
		"id\"}\n{\"id\":\"B\",\"act\":\"x\",\"errno\":\"EPERM,ENOSYS\",\"detail\":{\"a\":\"EPERM\"}}"
	got := Parse([]byte(out))
	if len(got) != 2 || !got["A"].OK || got["B"].errnos()[1] != "ENOSYS" || got["B"].reached() != 0 {
		t.Errorf("parsed %+v", got)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("{\"id\":\"A\",\"act\":\"read\",\"ok\":true}\n"))
	f.Add([]byte("{\"id\":\"A\",\"act\":\"read\",\"errno\":\",,\",\"detail\":{\"\":\"\"}}"))
	f.Fuzz(func(t *testing.T, b []byte) {
		for id, o := range Parse(b) {
			if id == "" || o.Act == "" {
				t.Errorf("accepted %+v", o)
			}
			c := Check{Want: []string{"EPERM"}, Control: Control{Host: true}}
			if r := Judge(c, o, o); r.Status == Pass {
				t.Errorf("passed although both runs agree: %+v", o)
			}
		}
	})
}
