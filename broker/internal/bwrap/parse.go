//go:build linux

package bwrap

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// action is what an operation does.
type action uint8

const (
	bindRW action = iota
	bindRO
	bindDev
	overlayRW
	overlayTmp
	overlayRO
	proc
	dev
	tmpfs
	mqueue
	dir
	fileCopy
	fileRW
	fileRO
	symlink
	remount
	chmod
)

// operation is one of those that are carried out in the order of the command line.
type operation struct {
	do     action
	source string // a path on the host; of a link its text; of an overlay the upper layer
	work   string
	layers []string // topmost first
	dest   string
	fd     int // -1: none
	perms  int // -1: as usual
	size   uint64
	try    bool     // nothing is done where source does not exist
	kept   []string // see drawing.kept, where something holds under the words
}

// request is what was asked for.
type request struct {
	ops                                          []operation
	env                                          []string
	argv                                         []string
	arg0                                         *string
	level                                        bool
	user, userTry, ipc, pid, net, uts            bool
	cgroup, cgroupTry                            bool
	userns, userns2, pidns                       int
	noUserNS, checkNoUserNS                      bool
	uid, gid                                     int // -1: the caller's
	host                                         *string
	start                                        *string // directory
	locks                                        []string
	sync, block, usernsBlock, info, status       int
	session, dies, pid1, needsPTS, changesRights bool
	keep                                         uint64
	filter                                       int
	filters                                      []int
	read                                         []int // descriptors that were read to their end, or have another number
	warnings                                     []string
}

// usageError asks for the first line of the help.
type usageError struct{}

func (usageError) Error() string { return "usage" }

// failure is a message in bubblewrap's words.
type failure string

func (f failure) Error() string { return string(f) }

func fail(format string, a ...any) error { return failure(fmt.Sprintf(format, a...)) }

// failErrno is fail, with what the kernel has said.
func failErrno(err error, format string, a ...any) error {
	return failure(fmt.Sprintf(format, a...) + ": " + errnoText(err))
}

// errnoText is strerror(3).
func errnoText(err error) string {
	e, ok := err.(syscall.Errno)
	if !ok {
		return err.Error()
	}
	text := e.Error()
	return strings.ToUpper(text[:1]) + text[1:]
}

const (
	maxArgs = 9000
	// the largest tmpfs: what of bytes fits half of an address space
	maxTmpfs = uint64(1)<<63 - 1
)

// parser reads a command line.
type parser struct {
	request
	load   func(fd int) ([]byte, error) // what is in a descriptor
	rows   map[string]*option
	inFile bool
	count  int
	perms  int // for the next operation; -1: none given
	size   uint64
	layers []string // of the next overlay, as given
}

// parse reads words, as the caller has given them. all are the capabilities that the caller would keep.
func parse(words, env []string, all uint64, load func(int) ([]byte, error)) (*request, error) {
	p := &parser{load: load, rows: map[string]*option{}, perms: -1}
	p.request = request{env: slices.Clone(env), userns: -1, userns2: -1, pidns: -1, uid: -1, gid: -1, sync: -1, block: -1,
		usernsBlock: -1, info: -1, status: -1, filter: -1, keep: all}
	table := options()
	for i := range table {
		p.rows[table[i].name] = &table[i]
	}
	p.count = len(words)
	rest, err := p.words(words)
	if err != nil {
		return nil, err
	}
	if len(p.layers) > 0 {
		return nil, errLayers
	}
	p.argv = rest
	return &p.request, nil
}

const errLayers = failure("--overlay-src must be followed by another --overlay-src or one of --overlay, " +
	"--tmp-overlay, or --ro-overlay")

// words reads options and returns what follows them.
func (p *parser) words(words []string) ([]string, error) {
	if p.count > maxArgs {
		return nil, fail("Exceeded maximum number of arguments %d", maxArgs)
	}
	for len(words) > 0 {
		word := words[0]
		o := p.rows[word]
		switch {
		case word == "--":
			return words[1:], nil
		case o == nil && !strings.HasPrefix(word, "-"):
			return words, nil
		case o == nil:
			return nil, fail("Unknown option %s", word)
		case o.take == nil:
			return nil, asked(word)
		}
		n := 0
		if o.args != "" {
			n = strings.Count(o.args, " ") + 1
		}
		if len(words) <= n {
			return nil, o.missing(n)
		}
		if err := o.take(p, words[:n+1]); err != nil {
			return nil, err
		}
		words = words[n+1:]
		if err := p.unused(word); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// asked is an option that prints something, and ends.
type asked string

func (a asked) Error() string { return string(a) }

func (o *option) missing(n int) error {
	count, name := [...]string{1: "an argument", "two arguments", "three arguments"}[n], o.name
	if o.one {
		count = "one argument"
	}
	if name == "--ro-bind-fd" {
		name = "--bind-fd"
	}
	return fail("%s takes %s", name, count)
}

// unused looks whether the word has left something that was given for it.
func (p *parser) unused(word string) error {
	modifies := word == "--perms" || word == "--size"
	switch {
	case !modifies && p.perms >= 0:
		return fail("--perms must be followed by an option that creates a file")
	case !modifies && p.size != 0:
		return fail("--size must be followed by --tmpfs")
	case word != "--overlay-src" && len(p.layers) > 0:
		return errLayers
	}
	return nil
}

// once warns where an option was given before.
func (p *parser) once(before bool, name string) {
	if before {
		p.warnings = append(p.warnings, "Only the last "+name+" option will take effect")
	}
}

// fd reads the number of a descriptor.
func fd(word string) (int, error) {
	n, err := strconv.ParseInt(word, 10, 32)
	if err != nil || n < 0 {
		return 0, fail("Invalid fd: %s", word)
	}
	return int(n), nil
}

// check says what of a whole line contradicts itself, in the order in which bubblewrap looks. root says that the caller
// is uid 0.
func (r *request) check(root bool) error {
	switch {
	case r.usernsBlock >= 0 && !r.user:
		return fail("--userns-block-fd requires --unshare-user")
	case r.usernsBlock >= 0 && r.info < 0:
		return fail("--userns-block-fd requires --info-fd")
	case r.userns >= 0 && r.user:
		return fail("--userns not compatible --unshare-user")
	case r.userns >= 0 && r.userTry:
		return fail("--userns not compatible --unshare-user-try")
	case r.noUserNS && !r.user:
		return fail("--disable-userns requires --unshare-user")
	case r.noUserNS && r.usernsBlock >= 0:
		return fail("--disable-userns is not compatible with  --userns-block-fd")
	}
	r.user = r.user || r.userTry || !root && r.userns < 0
	switch {
	case len(r.argv) == 0:
		return usageError{}
	case !r.user && r.userns < 0 && r.uid > 0:
		return fail("Specifying --uid requires --unshare-user or --userns")
	case !r.user && r.userns < 0 && r.gid > 0:
		return fail("Specifying --gid requires --unshare-user or --userns")
	case !r.uts && r.host != nil:
		return fail("Specifying --hostname requires --unshare-uts")
	case r.pid1 && !r.pid:
		return fail("Specifying --as-pid-1 requires --unshare-pid")
	case r.pid1 && len(r.locks) > 0:
		return fail("Specifying --as-pid-1 and --lock-file is not permitted")
	}
	return nil
}
