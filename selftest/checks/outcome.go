//go:build linux

package checks

import (
	"bufio"
	"bytes"
	"encoding/json"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// Outcome is one line the probe printed. OK means that the act succeeded: the attacker won.
type Outcome struct {
	ID     string            `json:"id"`
	Act    string            `json:"act"`
	OK     bool              `json:"ok"`
	Errno  string            `json:"errno"`
	Skip   string            `json:"skip"`
	Detail map[string]string `json:"detail"`
}

// noEffect: the act reported success, but the host did not change.
const noEffect = "NOEFFECT"

// Parse reads the probe's lines; what is not one of them is left out, since sandboxed programs can print, too.
func Parse(out []byte) map[string]Outcome {
	found := make(map[string]Outcome)
	s := bufio.NewScanner(bytes.NewReader(out))
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		line := bytes.TrimSpace(s.Bytes())
		if len(line) == 0 || line[0] != '{' {
			continue
		}
		var o Outcome
		if json.Unmarshal(line, &o) == nil && o.Act != "" && o.ID != "" {
			found[o.ID] = o
		}
	}
	return found
}

// errnos splits a joined answer.
func (o Outcome) errnos() []string {
	if o.Errno == "" {
		return nil
	}
	return strings.Split(o.Errno, ",")
}

// reached counts the calls that got past any filter.
func (o Outcome) reached() int {
	n := 0
	for _, e := range o.Detail {
		if !slices.Contains([]string{"EPERM", "ENOSYS", "EACCES", "SIGSYS"}, e) {
			n++
		}
	}
	return n
}

// failed says whether the answer of a call is an errno.
func failed(e string) bool {
	return len(e) > 1 && e[0] == 'E' && strings.ToUpper(e) == e && !strings.Contains(e, " ")
}

// text is what a person reads: the answer, and which calls gave an answer outside want.
func (o Outcome) text(want []string) string {
	if o.Act == "" {
		return "no answer from the probe"
	}
	var odd []string
	for call, e := range o.Detail {
		// Without a single answer to explain, the details say what succeeded.
		if o.OK && !failed(e) || !o.OK && (call == "note" || !slices.Contains(want, e)) {
			odd = append(odd, call+": "+e)
		}
	}
	sort.Strings(odd)
	more := ""
	if len(odd) > 6 {
		odd, more = odd[:6], " and "+strconv.Itoa(len(odd)-6)+" more"
	}
	head := o.Errno
	if o.OK {
		head = "succeeded"
	}
	if len(odd) == 0 {
		return head
	}
	return head + " (" + strings.Join(odd, "; ") + more + ")"
}
