package host

import "strings"

// Sockets lists the path names of the unix sockets that somebody on this host has bound (proc(5),
// /proc/net/unix). A socket below a read-only mount can still be connected to, so they are hidden.
func Sockets() []string {
	b, err := ReadFile("/proc/net/unix")
	if err != nil {
		return nil
	}
	return parseSockets(string(b))
}

// parseSockets takes the eighth column, where it is a path; abstract names begin with "@".
func parseSockets(text string) []string {
	var out []string
	seen := map[string]bool{}
	for line := range strings.SplitSeq(text, "\n") {
		i := strings.IndexByte(line, '/')
		if i < 0 || strings.Count(line[:i], " ") < 7 || line[i-1] != ' ' {
			continue
		}
		if p := line[i:]; !seen[p] {
			seen[p] = true
			out = append(out, p)
		}
	}
	return out
}
