package live

import (
	"cmp"
	"fmt"
	"os"
	"sort"
	"strconv"
	"strings"
	"sync"

	"sbx/broker/internal/gate/notify"
	"sbx/broker/internal/program"
	"sbx/broker/internal/quoting"
)

// maxBlocked is how many different refusals are remembered; what exceeds it is only counted.
const maxBlocked = 64

// blocked collects what the filter refused, for the summary after the run.
type blocked struct {
	mu    sync.Mutex
	seen  map[string]int
	more  int
	verb  bool
	print func(string)
	// attribute tells whose refusal it was; it may be nil.
	attribute func(pid uint32, line string)
	writes    *judged // nil: nothing is judged
}

// listen answers the filter's reports until the sandbox has ended.
func (b *blocked) listen(f *os.File) {
	var carrier notify.Carrier
	var err error
	if b.writes.any() {
		if carrier, err = b.writes.carrier(false); err != nil {
			b.print(err.Error())
		}
	}
	if err = notify.Denials(f, carrier, b.note); err != nil {
		b.print(err.Error())
	}
}

func (b *blocked) note(d notify.Denial) {
	who := caller(d.PID)
	what := fmt.Sprintf("%s by %s", d.Call, who)
	if b.attribute != nil {
		b.attribute(d.PID, what)
	}
	b.line(what, false)
}

// line notes one refusal, or with failed something that did not work.
func (b *blocked) line(line string, failed bool) {
	if line = "blocked: " + line; failed {
		line = strings.Replace(line, "blocked", "failed", 1)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.seen == nil {
		b.seen = map[string]int{}
	}
	if b.seen[line] == 0 && len(b.seen) >= maxBlocked {
		b.more++
		return
	}
	if b.seen[line]++; b.seen[line] == 1 && b.verb {
		b.print(line)
	}
}

// caller names a process as it is called inside: program and pid.
func caller(pid uint32) string {
	dir := "/proc/" + strconv.Itoa(int(pid))
	exe := cmp.Or(program.Of(int(pid)), "?")
	inside := pid
	b, _ := os.ReadFile(dir + "/status")
	for line := range strings.SplitSeq(string(b), "\n") {
		if ids, ok := strings.CutPrefix(line, "NSpid:"); ok {
			f := strings.Fields(ids)
			if n, err := strconv.ParseUint(f[len(f)-1], 10, 32); err == nil {
				inside = uint32(n)
			}
		}
	}
	return fmt.Sprintf("%s[%d]", quoting.Quote(program.Name(exe)), inside)
}

// summary lists what was refused, unless it was printed while it happened.
func (b *blocked) summary() []string { return b.lines(!b.verb) }

// all lists what was refused, for the record.
func (b *blocked) all() []string { return b.lines(true) }

func (b *blocked) lines(printed bool) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []string
	for line, n := range b.seen {
		if n > 1 {
			line += fmt.Sprintf(" (%d times)", n)
		} else if !printed {
			continue
		}
		out = append(out, line)
	}
	sort.Strings(out)
	if b.more > 0 {
		out = append(out, fmt.Sprintf("blocked: %d further calls", b.more))
	}
	return out
}
