package cli

import "strings"

// engine is what its containers are given for the native backend, in its own words. docs/containers.md says what each
// costs.
type engine struct {
	command, between    string // what stands before an option, and between two
	proc, filters, fuse string
}

func engineNamed(name string) engine {
	switch name {
	case "podman":
		return engine{"podman run ", " ", "--security-opt unmask=ALL", "--security-opt seccomp=unconfined",
			"--device /dev/fuse"}
	case "docker":
		return engine{"docker run ", " ", "--security-opt systempaths=unconfined",
			"--security-opt seccomp=unconfined --security-opt apparmor=unconfined", "--device /dev/fuse"}
	case "kubernetes":
		return engine{"", ", ", "hostUsers: false and securityContext.procMount: Unmasked",
			"seccompProfile.type: Unconfined", "a device plugin that gives the pod /dev/fuse"}
	}
	return engine{} // no container
}

// engineLacks is what a container lacks for the native backend.
type engineLacks struct {
	proc       bool // its /proc is covered in places
	namespaces bool // its filter refuses them
	fuse       bool // there is no /dev/fuse
}

// engineOptions says which options of a container's engine give the native backend.
func engineOptions(name string, l engineLacks) string {
	e := engineNamed(name)
	var out []string
	if l.proc {
		out = append(out, e.proc)
	}
	if l.namespaces {
		out = append(out, e.filters)
	}
	if l.fuse {
		out = append(out, e.fuse)
	}
	if len(out) == 0 {
		return "a kernel that lets this container have user namespaces"
	}
	return "the native backend takes, of " + name + ": " + strings.Join(out, e.between) +
		"; each opens more of the kernel to all of this container (docs/containers.md)"
}

// fuseOption is what gives a container the device, "" outside of one.
func fuseOption(name string) string {
	e := engineNamed(name)
	return e.command + e.fuse
}
