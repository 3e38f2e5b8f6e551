//go:build linux

package cli

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sbx.example/sbx/broker/internal/program"
)

// TestDoctorMarks: ok stands before what works, LOSS before what is lost, note before the rest; the last line counts.
func TestDoctorMarks(t *testing.T) {
	text := doctorText([]finding{{What: "a", OK: true, Says: "works"}, {What: "b", Loss: true, Says: "lacks", Fix: "do"},
		{What: "c", Says: "not installed"}})
	want := "ok    a                  works\nLOSS  b                  lacks\n                         fix: do\n" +
		"note  c                  not installed\n1 loss: b; 1 of these work. sbx doctor --fix prints what mends it\n"
	if text != want {
		t.Errorf("%s", text)
	}
	last := doctorText([]finding{{What: "a", OK: true}})
	if !strings.Contains(last, "\nnothing is lost: 1 of these work") {
		t.Errorf("%s", last)
	}
	for release, ok := range map[string]bool{"6.18.5": true, "5.12.0-1-amd64": true, "5.11.9": false, "4.19.0": false,
		"odd": true} {
		if f := kernelFinding(release); f.OK != ok || f.Loss == ok {
			t.Errorf("%s: %+v", release, f)
		}
	}
	// What an older kernel lacks is named, and nothing that it has.
	for release, want := range map[string][2]string{"5.4.0-150-generic": {"openat2 .*overlays .*mount_setattr", ""},
		"5.10.0": {"bwrap alone.*overlays .*mount_setattr .*Landlock", "openat2|time namespaces"},
		"5.11.9": {"mount_setattr", "overlays"}, "4.19.0": {"cannot be built: .*pidfd_open", "bwrap"}} {
		says := kernelFinding(release).Says
		if !regexp.MustCompile(want[0]).MatchString(says) || want[1] != "" && regexp.MustCompile(want[1]).MatchString(says) {
			t.Errorf("%s: %s", release, says)
		}
	}
}

// TestRemedies: what root could do is what this host needs and nothing else; it is done as it is printed.
func TestRemedies(t *testing.T) {
	root := t.TempDir()
	put := func(p, text string, mode os.FileMode) {
		t.Helper()
		f := filepath.Join(root, p)
		err := errors.Join(os.MkdirAll(filepath.Dir(f), 0o755), os.WriteFile(f, []byte(text), mode), os.Chmod(f, mode))
		if err != nil {
			t.Fatal(err)
		}
	}
	put("dev/fuse", "", 0o600)
	put("dev/net/tun", "", 0o666)
	put("proc/sys/kernel/unprivileged_userns_clone", "0\n", 0o644)
	put("proc/sys/user/max_user_namespaces", "1000\n", 0o644)
	list := remedies(root, program.Source{})
	var got []string
	for _, r := range list {
		got = append(got, strings.Join(r.command, " "))
		if err := r.do(); err != nil {
			t.Error(err)
		}
	}
	want := "chmod 0666 " + root + "/dev/fuse; sysctl -w kernel.unprivileged_userns_clone=1"
	if s := strings.Join(got, "; "); s != want {
		t.Errorf("%s, want %s", s, want)
	}
	if left := remedies(root, program.Source{}); len(left) != 0 {
		t.Errorf("still: %v", left)
	}
	if err := os.Remove(root + "/dev/net/tun"); err != nil {
		t.Fatal(err)
	}
	if list = remedies(root, program.Source{}); len(list) != 1 || list[0].command[0] != "modprobe" {
		t.Errorf("%v", list)
	}
}

// TestEngineOptions: what doctor says of /dev/fuse alone and what it says of namespaces name the same of an engine.
func TestEngineOptions(t *testing.T) {
	for name, want := range map[string]string{"podman": "--security-opt unmask=ALL --device /dev/fuse;",
		"docker": "--security-opt systempaths=unconfined --device /dev/fuse;",
		"kubernetes": "hostUsers: false and securityContext.procMount: Unmasked, a device plugin that gives the pod " +
			"/dev/fuse;"} {
		got := engineOptions(name, engineLacks{proc: true, fuse: true})
		device := strings.TrimPrefix(fuseOption(name), name+" run ")
		if !strings.Contains(got, "of "+name+": "+want) || !strings.Contains(got, device+";") {
			t.Errorf("%s\n%s", got, device)
		}
	}
	if got := fuseOption(""); got != "" {
		t.Error(got)
	}
	if got := engineOptions("docker", engineLacks{}); !strings.HasPrefix(got, "a kernel that lets") {
		t.Error(got)
	}
}
