//go:build linux

package checks

// resources: what can be shown in seconds and without disturbing the host; the rest is in elsewhere_test.go.
func resources() []Check {
	return []Check{
		{ID: "RS-01", Group: Resources, Title: "fork bomb", Tries: "200 processes with --pids 64", Must: "EAGAIN",
			Layer: "cgroup", Act: "forks", Args: []string{"200"}, Options: []string{"--pids", "64"}, Needs: []string{"cgroup"},
			Alone: true,
			Want:  []string{"EAGAIN", "DIED", "SIGKILL"}, Control: onHost()},
		{ID: "RS-02", Group: Resources, Title: "memory bomb", Tries: "256 MiB with --memory 96M", Must: "killed or refused",
			Layer: "cgroup", Act: "memory", Args: []string{"256"}, Options: []string{"--memory", "96M"},
			Needs: []string{"cgroup"}, Alone: true,
			Want: []string{"SIGKILL", "ENOMEM", "DIED"}, Control: onHost()},
		{ID: "RS-04", Group: Resources, Title: "filling /tmp", Tries: "64 MiB with --tmp-size 16M", Must: "ENOSPC",
			Layer: "mount view", Act: "fill", Args: []string{"/tmp/probe", "64"}, Options: []string{"--tmp-size", "16M"},
			Want: []string{"ENOSPC"}, Control: Control{Host: true, Args: []string{"{LAB}/fill", "64"}}},
		// five times what 16M have room for
		{ID: "RS-04-inodes", Group: Resources, Title: "filling /tmp with empty files",
			Tries: "20 000 files with --tmp-size 16M", Must: "ENOSPC", Layer: "mount view", Act: "inodes",
			Args: []string{"/tmp/probe", "20000"}, Options: []string{"--tmp-size", "16M"},
			Want: []string{"ENOSPC"}, Control: Control{Host: true, Args: []string{"{LAB}/fill", "2000"}}},
		{ID: "RS-09", Group: Resources, Title: "opens interrupted by signals",
			Tries: "3000 opens under a timer without SA_RESTART", Must: "no EINTR", Layer: "gate", Act: "eintr",
			Args: []string{"{RO}"}, Want: []string{"NONE"},
			Control: Control{None: "only a notifying gate can cause it; there is no layer to switch off"}},
		{ID: "RS-11", Group: Resources, Title: "huge arguments and names",
			Tries: "1.3 MB of arguments, names of 255 and 5000 bytes", Must: "works, or is refused cleanly", Layer: "kernel",
			Act: "bigargv", Args: []string{"{HOME}"},
			Want:    []string{"NONE", "E2BIG", "ENAMETOOLONG", "ENOENT", "EACCES"},
			Control: Control{None: "shows that nothing breaks; there is no layer to switch off"}},
		{ID: "RS-12", Group: Resources, Title: "deep directories and link mazes", Tries: "400 levels, 60 links",
			Must: "ELOOP, and the session ends normally", Layer: "kernel", Act: "maze", Args: []string{"60"},
			Want:    []string{"ELOOP"},
			Control: Control{Host: true, Args: []string{"5"}}},
		{ID: "RS-13", Group: Resources, Title: "processor hog", Tries: "four threads with --cpu 20%", Must: "throttled",
			Layer: "cgroup", Act: "cpu", Options: []string{"--cpu", "20%"}, Needs: []string{"cgroup"}, Alone: true,
			Want: []string{"THROTTLED"}, Control: onHost()},
	}
}

// containers: the opt-in for nested user namespaces.
func containers() []Check {
	nested := []string{"--containers"}
	return append(again(Containers, "CT-", nested, "containers"), []Check{
		{ID: "NX-01", Group: Containers, Title: "nested root lifts a mount", Tries: "umount, remount, bind of hidden parts",
			Must: "the secret stays hidden", Layer: "mount view", Act: "nestedmounts", Args: []string{"{HOME}", "{SECRET}"},
			Options: nested, Needs: []string{"containers"}, Want: []string{"NONE", "EPERM", "ENOSPC"},
			Control: Control{Host: true, Needs: []string{"userns"}}},
		{ID: "NX-02", Group: Containers, Title: "nested root and the kernel",
			Tries: "eight calls as root of a nested namespace", Must: "refused", Layer: "seccomp", Act: "nestedsweep",
			Options: nested, Needs: []string{"containers"}, Want: filter(), Control: Control{Host: true, Drop: true, Reach: 2,
				Needs: []string{"userns"}}},
	}...)
}

// again is the part of the network's checks that is about sockets, in a mode that an option opens. That mode must not
// be needed for them to succeed without a sandbox, so their control is the host's.
func again(group, prefix string, options []string, needs ...string) (out []Check) {
	for _, c := range network() {
		switch c.ID {
		case "NT-03", "NT-04", "NT-05", "NT-07-sock", "NT-09", "NT-10", "NT-24":
			c.ID, c.Group, c.Title = prefix+c.ID, group, c.Title+", with "+options[0]
			c.Options, c.Needs = options, append(needs[:len(needs):len(needs)], c.Needs...)
			c.Control.Off = nil
			out = append(out, c)
		}
	}
	return out
}
