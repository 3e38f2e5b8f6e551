package cli

import "strings"

// engineOptions says which options of a container's engine give the native backend: covered says that its /proc is
// covered in places, refused that its filter refuses namespaces, fuse that /dev/fuse is there. docs/containers.md says
// what each costs.
func engineOptions(engine string, covered, refused, fuse bool) string {
	type option struct {
		wanted bool
		words  map[string]string
	}
	var out []string
	for _, o := range [...]option{
		{covered, map[string]string{"podman": "--security-opt unmask=ALL", "docker": "--security-opt systempaths=unconfined",
			"kubernetes": "hostUsers: false and securityContext.procMount: Unmasked"}},
		{refused, map[string]string{"podman": "--security-opt seccomp=unconfined", "docker": "--security-opt " +
			"seccomp=unconfined --security-opt apparmor=unconfined", "kubernetes": "seccompProfile.type: Unconfined"}},
		{!fuse, map[string]string{"podman": "--device /dev/fuse", "docker": "--device /dev/fuse"}},
	} {
		if words := o.words[engine]; o.wanted && words != "" {
			out = append(out, words)
		}
	}
	if len(out) == 0 {
		return "a kernel that lets this container have user namespaces"
	}
	return "the native backend takes, of " + engine + ": " + strings.Join(out, " ") +
		"; each opens more of the kernel to all of this container (docs/containers.md)"
}

// fuseOption is what gives a container the device, "" outside of one.
func fuseOption(engine string) string {
	switch engine {
	case "podman", "docker":
		return engine + " run --device /dev/fuse"
	case "kubernetes":
		return "a device plugin that gives the pod /dev/fuse"
	}
	return ""
}
