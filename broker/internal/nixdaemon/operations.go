//go:build linux

package nixdaemon

// Operations with a case of their own.
const (
	opIsValidPath      = 1
	opAddToStore       = 7
	opBuildPaths       = 9
	opSetOptions       = 19
	opQueryValidPaths  = 31
	opAddToStoreNar    = 39
	opAddMultiple      = 44
	opBuildWithResults = 46
)

// operation is one row: the fields that follow its number, or why it is refused.
//
//	s a string, S a list of them, n a number, M a map of strings, F the content of files in pieces
type operation struct {
	number uint64
	name   string
	fields string
	refuse string
}

const (
	maintenance = "it is maintenance of the whole store, and the sandbox may only use it"
	obsolete    = "it is an operation of clients older than Nix 2.4"
	foreign     = "it lets paths into the store whose content nobody has checked"
)

// operations is everything the filter knows. What has no row is refused.
func operations() []operation {
	return []operation{
		{opIsValidPath, "look up a path", "s", ""},
		{6, "list who refers to a path", "s", ""},
		{opAddToStore, "add a path", "", ""},
		{opBuildPaths, "build", "", ""},
		{10, "ensure a path", "s", ""},
		{11, "keep a path for now", "s", ""},
		{12, "keep the result of a build", "s", ""},
		{opSetOptions, "set options", "", ""},
		{21, "ask for a substitute", "s", ""},
		{22, "list outputs", "s", ""},
		{23, "list all paths", "", ""},
		{26, "look up a path", "s", ""},
		{28, "list names of outputs", "s", ""},
		{29, "find a path by its hash", "s", ""},
		{30, "ask for substitutes", "M", ""},
		{opQueryValidPaths, "look up paths", "", ""},
		{32, "ask for substitutes", "S", ""},
		{33, "list derivers", "s", ""},
		{38, "read a path", "s", ""},
		{opAddToStoreNar, "import a path", "", ""},
		{40, "ask what a build would need", "S", ""},
		{41, "list outputs", "s", ""},
		{43, "look up a realisation", "s", ""},
		{opAddMultiple, "import paths", "", ""},
		{opBuildWithResults, "build", "", ""},

		{3, "ask for a substitute", "", obsolete},
		{4, "look up a hash", "", obsolete},
		{5, "list references", "", obsolete},
		{8, "add a text", "", obsolete},
		{13, "wait for the garbage collector", "", obsolete},
		{14, "list garbage collector roots", "", "the roots tell about files outside of the sandbox"},
		{16, "export a path", "", obsolete},
		{18, "find the deriver", "", obsolete},
		{20, "collect garbage", "", maintenance},
		{24, "list failed paths", "", obsolete},
		{25, "forget failed paths", "", maintenance},
		{27, "import paths", "", foreign},
		{34, "optimise the store", "", maintenance},
		{35, "verify or repair the store", "", maintenance},
		{36, "build a derivation that is not in the store", "", foreign},
		{37, "sign a path", "", "it changes what others take for genuine"},
		{42, "register a realisation", "", foreign},
		{45, "add a build log", "", "only trusted users may, and the sandbox is none"},
		{47, "add a permanent root", "", "only trusted users may, and the sandbox is none"},
	}
}

func find(number uint64) *operation {
	list := operations()
	for i := range list {
		if list[i].number == number {
			return &list[i]
		}
	}
	return nil
}

// fields reads what a row says.
func (r *reader) fields(shape string) {
	for _, f := range shape {
		switch f {
		case 's':
			r.str()
		case 'S':
			r.strs()
		case 'n':
			r.num()
		case 'M':
			for n := r.num(); n > 0 && r.err == nil; n-- {
				r.str()
				r.str()
			}
		}
	}
}
