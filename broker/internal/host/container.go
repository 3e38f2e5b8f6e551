package host

import (
	"slices"
	"strings"
)

// Container names the engine in whose container this process is: podman, docker or kubernetes, "" for none that is
// known. It goes by what each puts there: KUBERNETES_SERVICE_HOST, /run/.containerenv, /.dockerenv.
func Container(env []string) string {
	switch {
	case Lookup(env, "KUBERNETES_SERVICE_HOST") != "":
		return "kubernetes"
	case Exists("/run/.containerenv"):
		return "podman"
	case Exists("/.dockerenv"):
		return "docker"
	}
	return ""
}

// ProcCovered says whether something of each proc is covered, so that the kernel mounts no other in a user namespace
// (mount_too_revealing in fs/namespace.c). What stands on a directory that is always empty covers nothing.
func (f Facts) ProcCovered() bool {
	for _, p := range f.Mounts {
		covers := func(m Mount) bool {
			return strings.HasPrefix(m.Point, p.Point+"/") && !strings.HasSuffix(m.Point, "/sys/fs/binfmt_misc")
		}
		if p.Type == "proc" && p.Root == "/" && !slices.ContainsFunc(f.Mounts, covers) {
			return false
		}
	}
	return true
}
