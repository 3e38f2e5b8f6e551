//go:build linux

package checks

// All is the whole table, in the order of the report's groups.
func All() []Check {
	var all []Check
	for _, part := range [][]Check{reading(), looking(), writing(), planting(), privileges(), processes(), kernel(),
		terminal(), network(), resources(), containers(), machines(), packages(), grants(), alone()} {
		all = append(all, part...)
	}
	return all
}

// guard is the fact behind names of the project that cannot be made: the broker hears of the calls.
func guard() []string { return []string{"guard"} }

// server is the fact behind a file system of sbx's own, where a name does not exist whatever the host does to it.
func server() []string { return []string{"server"} }

func hidden() []string { return []string{"ENOENT", "EACCES", "EPERM"} }
func filter() []string { return []string{"ENOSYS", "EPERM"} }
func gone() []string   { return []string{"ENOENT", "EACCES", "EPERM", "ECONNREFUSED"} }
func blocked() []string {
	return []string{"EROFS", "EACCES", "EPERM", "ENOENT", "EXDEV", "EBUSY", noEffect}
}

func onHost() Control { return Control{Host: true} }

func plus(list []string, more ...string) []string { return append(list, more...) }

func under(dir string, names ...string) []string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = dir + "/" + n
	}
	return out
}

func files(dir, text string, names ...string) []Setup {
	out := make([]Setup, len(names))
	for i, n := range names {
		out[i] = Setup{Kind: "file", Path: dir + "/" + n, Text: text}
	}
	return out
}

func verify(kind string, paths ...string) []Verify {
	out := make([]Verify, len(paths))
	for i, p := range paths {
		out[i] = Verify{Kind: kind, Path: p}
	}
	return out
}
