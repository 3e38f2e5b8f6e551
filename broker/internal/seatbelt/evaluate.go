package seatbelt

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// isOperation says whether the kernel has an operation, or a group of them, of that name: those that are used here.
// One that an older macOS does not know would have sandbox-exec refuse every profile, so there are no newer ones than
// of 10.14.
func isOperation(name string) bool {
	return slices.Contains([]string{
		"file-ioctl", "file-map-executable", "file-read*", "file-read-data", "file-read-metadata", "file-read-xattr",
		"file-write*", "file-write-create", "file-write-data", "file-write-flags", "file-write-mode", "file-write-owner",
		"file-write-setugid", "file-write-times", "file-write-unlink", "file-write-xattr",
		"ipc-posix-sem", "ipc-posix-shm-read-data", "mach-lookup", "network-bind", "network-inbound", "network-outbound",
		"nvram*", "process-exec", "process-exec*", "process-exec-interpreter", "process-fork", "process-info*",
		"pseudo-tty", "signal", "sysctl-read", "system-socket",
	}, name)
}

// checkFilter looks at the words, the kinds and the number of what a filter is made of.
func checkFilter(e *expr) error {
	if e.kind != list || len(e.list) < 2 || e.list[0].kind != symbol {
		return fmt.Errorf("%s is no filter", e)
	}
	name, args := e.list[0].atom, e.list[1:]
	one := func(k kind) error {
		if len(args) != 1 || args[0].kind != k {
			return fmt.Errorf("%s: %s takes one word of another kind", e, name)
		}
		return nil
	}
	switch name {
	case "require-all", "require-any", "require-not":
		if name == "require-not" && len(args) != 1 {
			return fmt.Errorf("%s: one filter is denied", e)
		}
		for i := range args {
			if err := checkFilter(&args[i]); err != nil {
				return err
			}
		}
		return nil
	case "literal", "subpath":
		if err := one(text); err != nil {
			return err
		}
		if !strings.HasPrefix(args[0].atom, "/") || name == "subpath" && len(args[0].atom) > 1 &&
			strings.HasSuffix(args[0].atom, "/") {
			return fmt.Errorf("%s: not an absolute path without a slash at its end", e)
		}
		return nil
	case "regex":
		if err := one(pattern); err != nil {
			return err
		}
		var err error
		args[0].is, err = compile(args[0].atom)
		return err
	case "global-name", "sysctl-name", "sysctl-name-prefix", "ipc-posix-name", "extension":
		return one(text)
	case "target":
		return one(symbol)
	case "remote", "local":
		if len(args) < 1 || len(args) > 2 || args[0].kind != symbol || args[0].atom != "ip" ||
			len(args) == 2 && (args[1].kind != text || args[1].atom != "localhost:*" && args[1].atom != "*:*") {
			return fmt.Errorf("%s: rules know ip, and of addresses localhost and *", e)
		}
		return nil
	}
	return fmt.Errorf("%s is no filter that is known", e)
}

// compile reads an expression as the kernel's own does: POSIX without its classes, over bytes.
func compile(e string) (*regexp.Regexp, error) {
	for _, no := range [...]string{"(?", "[[", `\d`, `\w`, `\s`, `\b`, "{", "}"} {
		if strings.Contains(e, no) && !strings.Contains(e, `\`+no) {
			return nil, fmt.Errorf("the expression %q has %s, which the kernel's do not", e, no)
		}
	}
	if len(e) > 4*maxExpression {
		return nil, fmt.Errorf("an expression of %d bytes", len(e))
	}
	if !strings.HasPrefix(e, "^") {
		return nil, fmt.Errorf("the expression %q is not bound to the path's beginning", e)
	}
	return regexp.Compile("(?s)" + bytewise(e))
}

// bytewise has a letter for each byte, because package regexp is over letters.
func bytewise(s string) string {
	out := make([]rune, len(s))
	for i := range len(s) {
		out[i] = rune(s[i])
	}
	return string(out)
}

// Allows answers for an operation on an object: a path, the name of a service or a number of the system, "ip HOST:PORT"
// for an address, or a process ("same-sandbox", "others").
func (p *Profile) Allows(operation, object string) bool {
	for i := len(p.rules) - 1; i >= 0; i-- { // the last that matches decides
		if r := &p.rules[i]; r.covers(operation) && r.holds(object) {
			return r.allow
		}
	}
	return false // (deny default)
}

func (r *ruled) covers(operation string) bool {
	return slices.ContainsFunc(r.operations, func(o string) bool {
		group, star := strings.CutSuffix(o, "*")
		return o == operation || star && strings.HasPrefix(operation, group)
	})
}

func (r *ruled) holds(object string) bool {
	return len(r.filters) == 0 || slices.ContainsFunc(r.filters, func(e expr) bool { return matches(e, object) })
}

func matches(e expr, object string) bool {
	args := e.list[1:]
	yes := func(a expr) bool { return matches(a, object) }
	switch e.list[0].atom {
	case "require-all":
		return !slices.ContainsFunc(args, func(a expr) bool { return !yes(a) })
	case "require-any":
		return slices.ContainsFunc(args, yes)
	case "require-not":
		return !yes(args[0])
	case "literal", "global-name", "sysctl-name", "ipc-posix-name", "target":
		return args[0].atom == object
	case "sysctl-name-prefix":
		return strings.HasPrefix(object, args[0].atom)
	case "subpath":
		return object == args[0].atom || strings.HasPrefix(object, strings.TrimSuffix(args[0].atom, "/")+"/")
	case "regex":
		return args[0].is.MatchString(bytewise(object))
	case "remote", "local":
		at, ip := strings.CutPrefix(object, "ip ")
		return ip && (len(args) == 1 || args[1].atom == "*:*" || strings.HasPrefix(at, "localhost:"))
	}
	return false // an extension, which nothing here hands out
}
