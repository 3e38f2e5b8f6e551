//go:build linux

package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/program"
)

// remedy is something that root can do so that sandboxes lack less.
type remedy struct {
	why     string
	command []string // what an administrator would type
	lasts   string   // what keeps it after the next start of the host
	do      func() error
}

// remedies are those that this host needs, whoever asks: what is below root is looked at, not tried.
func remedies(root string, from program.Source) (out []remedy) {
	at := func(p string) string { return filepath.Join(root, p) }
	for _, dev := range [...]struct{ file, why string }{
		{"/dev/fuse", "a root that sbx serves, and projects without their secrets, need it"},
		{"/dev/net/tun", "--allow-network and --allow-host need it"},
	} {
		file := at(dev.file)
		if st, err := os.Stat(file); err == nil && st.Mode().Perm()&0o006 != 0o006 {
			out = append(out, remedy{why: dev.why, command: []string{"chmod", "0666", file},
				lasts: "a rule of udev, as distributions ship it", do: func() error { return os.Chmod(file, 0o666) }})
		}
	}
	for _, set := range [...]struct{ key, bad, good, why string }{
		{"kernel.unprivileged_userns_clone", "0", "1", "sandboxes are built in user namespaces"},
		{"user.max_user_namespaces", "0", "15000", "sandboxes are built in user namespaces"},
	} {
		file := at("/proc/sys/" + strings.ReplaceAll(set.key, ".", "/"))
		if b, err := os.ReadFile(file); err == nil && strings.TrimSpace(string(b)) == set.bad {
			out = append(out, remedy{why: set.why, command: []string{"sysctl", "-w", set.key + "=" + set.good},
				lasts: "a file in /etc/sysctl.d", do: func() error { return os.WriteFile(file, []byte(set.good+"\n"), 0o644) }})
		}
	}
	run := func(why, lasts, name string, args ...string) {
		out = append(out, remedy{why: why, lasts: lasts, command: append([]string{name}, args...), do: func() error {
			p, err := from.Find(name)
			if err != nil {
				return err
			}
			return p.Command(args...).Run()
		}})
	}
	if _, err := os.Stat(at("/dev/net/tun")); os.IsNotExist(err) {
		run("--allow-network and --allow-host need /dev/net/tun", "a file in /etc/modules-load.d", "modprobe", "tun")
	}
	restricts, _ := os.ReadFile(at("/proc/sys/kernel/apparmor_restrict_unprivileged_userns"))
	if profile := at("/etc/apparmor.d/sbx"); strings.TrimSpace(string(restricts)) == "1" && host.Exists(profile) &&
		!strings.Contains(loadedProfiles(at("/sys/kernel/security/apparmor/profiles")), "sbx (") {
		run("AppArmor lets sbx build sandboxes by it", "the package sbx, which has it loaded at each start",
			"apparmor_parser", "-r", profile)
	}
	return out
}

func loadedProfiles(file string) string {
	b, _ := os.ReadFile(file)
	return string(b)
}

// mend prints what there is to do, or does it.
func (t *term) mend(list []remedy, asRoot bool) int {
	if len(list) == 0 {
		t.print("nothing that sbx could mend; sbx doctor says what works and what is lost\n")
		return 0
	}
	status := 0
	for _, r := range list {
		line := strings.Join(r.command, " ")
		if !asRoot {
			t.print(fmt.Sprintf("%s  # as root: %s; to keep it: %s\n", line, r.why, r.lasts))
			continue
		}
		if err := r.do(); err != nil {
			status = t.fail(fmt.Errorf("%s: %w", line, err))
			continue
		}
		t.print(fmt.Sprintf("done: %s (%s; to keep it: %s)\n", line, r.why, r.lasts))
	}
	return status
}
