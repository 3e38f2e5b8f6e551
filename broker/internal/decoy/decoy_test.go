//go:build linux

package decoy

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/shared/mark"
)

func TestMake(t *testing.T) {
	for p, want := range map[string]string{
		"/h/.ssh/id_ed25519":         "-----BEGIN OPENSSH PRIVATE KEY-----",
		"/h/key.pem":                 "-----BEGIN OPENSSH PRIVATE KEY-----",
		"/h/.aws/credentials":        "[default]\naws_access_key_id = AKIA",
		"/h/.env.local":              "APP_ENV=",
		"/h/.netrc":                  "machine git.internal login deploy password ",
		"/h/.config/git/credentials": "https://deploy:",
		"/h/.docker/config.json":     `{"token_type": "Bearer"`,
		"/h/.kube/config":            "user: deploy\ntoken: ",
		"/h/anything":                "user = deploy\npassword = ",
	} {
		text, m := Make(p)
		if !strings.HasPrefix(text, want) || !strings.Contains(text, m) || len(m) != mark.Len ||
			strings.Contains(text, "%") {
			t.Errorf("%s: mark %q in\n%s", p, m, text)
		}
		if other, again := Make(p); other == text || again == m {
			t.Errorf("%s: twice the same", p)
		}
	}
}

// TestWatch: who opens what is watched waits until it is released, and asking for attributes makes nobody wait.
func TestWatch(t *testing.T) {
	dir := t.TempDir()
	if err := Able(dir); err != nil {
		t.Fatal(err)
	}
	file, other := filepath.Join(dir, "file"), filepath.Join(dir, "other")
	for _, p := range []string{file, other} {
		if err := os.WriteFile(p, []byte("FAKE"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	opened := make(chan int, 9)
	w, err := New([]string{other, file}, func(n int) { opened <- n })
	if err != nil {
		t.Fatal(err)
	}
	var st unix.Stat_t
	if err := unix.Stat(file, &st); err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Open(file, unix.O_PATH, 0)
	if err != nil {
		t.Fatal(err)
	}
	unix.Close(fd)
	if list := w.broken(); list != nil || w.Broken() {
		t.Errorf("looking at a file opens %v", list)
	}
	if _, err := unix.Open(file, unix.O_RDONLY|unix.O_NONBLOCK, 0); err != unix.EAGAIN {
		t.Errorf("who does not wait is told %v, want EAGAIN", err)
	}
	if n := <-opened; n != 1 {
		t.Errorf("file %d was opened, want 1", n)
	}
	read := make(chan string)
	go func() {
		b, _ := os.ReadFile(file)
		read <- string(b)
	}()
	for !Waiting(os.Getpid()) {
		select {
		case text := <-read:
			t.Fatalf("%q was read before the release", text)
		default:
		}
	}
	if !w.Broken() {
		t.Error("nobody is said to wait")
	}
	if w.Release(1); w.Broken() {
		t.Error("somebody is said to wait for what was released")
	}
	if text := <-read; text != "FAKE" {
		t.Errorf("read %q", text)
	}
	if list := w.Close(); len(list) != 1 || list[0] != 1 {
		t.Errorf("opened at the end: %v, want [1]", list)
	}
	if _, err := os.ReadFile(other); err != nil {
		t.Error(err)
	}
}

// TestAble: where no lease is to be had, it is said.
func TestAble(t *testing.T) {
	if err := Able("/proc/self"); err == nil {
		t.Error("files of /proc can be watched")
	}
}
