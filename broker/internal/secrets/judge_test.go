package secrets

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sbx.example/sbx/broker/internal/guard"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/selftest/need"
)

const pemKey = "-----BEGIN PRIVATE KEY-----\nMIIB\n-----END PRIVATE KEY-----\n"

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func git(t *testing.T, dir string, args ...string) {
	t.Helper()
	need.Tool(t, "git")
	cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=a", "-c", "user.email=a@b.example"},
		args...)...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "HOME="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

func want(t *testing.T, j *Judge, root, rel string, hidden bool, because Because) {
	t.Helper()
	if f := j.At(root, rel); f.Hidden != hidden || f.Because != because {
		t.Errorf("%s: hidden %v because %q, want %v because %q", rel, f.Hidden, f.Because, hidden, because)
	} else if because != NoName && f.Reason() == "" {
		t.Errorf("%s: no reason", rel)
	}
}

func TestAt(t *testing.T) {
	d := t.TempDir()
	for name, text := range map[string]string{".env": "A=1", "sub/prod.env": "A=1", ".env.example": "A=",
		"key.pem": pemKey, "cert.pem": "-----BEGIN CERTIFICATE-----\n",
		"node_modules/x/key.pem": pemKey, "main.go": "package main", ".envs/.production/.postgres": "P=1", "venv2/.env": "",
		"sa.json": `{"type":"service_account","private_key":"k"}`, "data.json": "{}"} {
		write(t, d+"/"+name, text)
	}
	write(t, d+"/py/.env/pyvenv.cfg", "home = /usr/bin")
	write(t, d+"/py/.env/bin/activate", "x")
	for link, to := range map[string]string{"link.pem": "key.pem", ".env.link": "main.go"} {
		if err := os.Symlink(to, d+"/"+link); err != nil {
			t.Fatal(err)
		}
	}
	j := New(host.FS{}, nil, "")
	want(t, j, d, ".env", true, Name)
	want(t, j, d, "sub/prod.env", true, Name)
	want(t, j, d, ".env.example", false, NoName)
	want(t, j, d, "key.pem", true, Contents)
	want(t, j, d, "cert.pem", false, Contents)
	want(t, j, d, "node_modules/x/key.pem", false, Dependency)
	want(t, j, d, "main.go", false, NoName)
	want(t, j, d, ".envs", true, Name)
	want(t, j, d, ".envs/.production/.postgres", true, Name)
	want(t, j, d, "py/.env", false, Contents)
	want(t, j, d, "py/.env/bin/activate", false, Contents)
	want(t, j, d, "sa.json", true, Contents)
	want(t, j, d, "data.json", false, Contents)
	want(t, j, d, "link.pem", false, Contents)
	want(t, j, d, ".env.link", true, Name)
	want(t, j, d, "sub/.env", true, Name)         // nobody has it: it would be hidden
	want(t, j, d, "sub/missing.pem", false, Name) // it would be judged by its contents
	if err := os.Chmod(d+"/key.pem", 0); err == nil && os.Getuid() != 0 {
		want(t, j, d, "key.pem", true, Unreadable)
	}
}

// TestTracked: only what git has with exactly the contents of the file is shown. An entry that the program wrote into
// the index, without the contents, shows nothing.
func TestTracked(t *testing.T) {
	for _, packed := range []bool{false, true} {
		d := t.TempDir()
		git(t, d, "init", "-q")
		write(t, d+"/.env.test", "TEST=1\n")
		write(t, d+"/certs/key.pem", pemKey)
		write(t, d+"/.envs/local/x", "L=1\n")
		git(t, d, "add", "-f", ".")
		git(t, d, "commit", "-qm", "x")
		if packed {
			git(t, d, "gc", "-q", "--prune=now")
		}
		write(t, d+"/.env", "SECRET=1\n")
		write(t, d+"/.envs/prod/x", "P=1\n")
		j := New(host.FS{}, nil, "")
		want(t, j, d, ".env.test", false, Tracked)
		want(t, j, d, "certs/key.pem", false, Tracked)
		want(t, j, d, ".env", true, Name)
		want(t, j, d, ".envs", false, Tracked)
		want(t, j, d, ".envs/local/x", false, Tracked)
		want(t, j, d, ".envs/prod/x", true, Name)
		write(t, d+"/.env.test", "TEST=really-secret\n")
		want(t, j, d, ".env.test", true, Modified)
		// the program lists a name with an object of its own
		git(t, d, "update-index", "--add", "--cacheinfo", "100644,"+strings.TrimSpace(string(hashOf(t, d, "guess")))+",.env")
		want(t, j, d, ".env", true, Modified)
	}
}

// TestTrackedWithoutTheObject: an id without the object in the repository is no proof, as the program may know ids from
// trees whose files were never fetched.
func TestTrackedWithoutTheObject(t *testing.T) {
	d := t.TempDir()
	git(t, d, "init", "-q")
	write(t, d+"/.env", "SECRET=1\n")
	cmd := exec.Command("git", "-C", d, "hash-object", ".env") // does not write it
	id, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	git(t, d, "update-index", "--add", "--cacheinfo", "100644,"+strings.TrimSpace(string(id))+",.env")
	j := New(host.FS{}, nil, "")
	want(t, j, d, ".env", true, Modified)
	git(t, d, "hash-object", "-w", ".env") // the control: with the object it is known
	want(t, j, d, ".env", false, Tracked)
}

func hashOf(t *testing.T, dir, text string) []byte {
	t.Helper()
	cmd := exec.Command("git", "-C", dir, "hash-object", "-w", "--stdin")
	cmd.Stdin = strings.NewReader(text)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestHeld: what the sandbox goes on writing without being watched is its own until the end, and then as it is; a later
// change is the host's.
func TestHeld(t *testing.T) {
	d := t.TempDir()
	file := d + "/state/own"
	l := Open(file)
	for name, text := range map[string]string{"p/.env": "MADE=1\n", "p/key.pem": pemKey, "p/empty.pem": "",
		"p/other.env": "HOST=1\n"} {
		write(t, d+"/"+name, text)
	}
	for _, name := range []string{".env", "key.pem", "empty.pem"} {
		f, err := os.Open(d + "/p/" + name)
		if err != nil {
			t.Fatal(err)
		}
		l.Hold(int(f.Fd()), guard.SecretOf(name, false))
		f.Close()
		write(t, d+"/p/"+name, "MADE=2\n"+pemKey)
		want(t, New(host.FS{}, l, ""), d+"/p", name, false, Own)
	}
	write(t, d+"/p/empty.pem", "a certificate, after all")
	want(t, New(host.FS{}, l, ""), d+"/p", "other.env", true, Name)
	if err := l.Save(); err != nil {
		t.Fatal(err)
	}
	next := Open(file)
	want(t, New(host.FS{}, next, ""), d+"/p", ".env", false, Own)
	want(t, New(host.FS{}, next, ""), d+"/p", "key.pem", false, Own)
	if len(next.have) != 2 {
		t.Errorf("%d entries, want none for what holds no secret", len(next.have))
	}
	write(t, d+"/p/.env", "HOST=longer\n")
	want(t, New(host.FS{}, next, ""), d+"/p", ".env", true, Name)
}

func TestLedger(t *testing.T) {
	d := t.TempDir()
	file := d + "/state/own"
	l := Open(file)
	stamp := func(name string) host.Stamp {
		t.Helper()
		st, err := host.FS{}.Stamp(d + "/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return st
	}
	write(t, d+"/p/.env", "MADE=1\n")
	l.Note(stamp("p/.env"))
	if err := l.Save(); err != nil {
		t.Fatal(err)
	}
	j := New(host.FS{}, Open(file), "")
	want(t, j, d+"/p", ".env", false, Own)
	// another session's entry survives
	other := Open(file)
	write(t, d+"/p/key.pem", pemKey)
	l.Note(stamp("p/key.pem"))
	if err := l.Save(); err != nil {
		t.Fatal(err)
	}
	write(t, d+"/p/id_rsa", pemKey)
	other.Note(stamp("p/id_rsa"))
	if err := other.Save(); err != nil {
		t.Fatal(err)
	}
	j = New(host.FS{}, Open(file), "")
	want(t, j, d+"/p", "key.pem", false, Own)
	want(t, j, d+"/p", "id_rsa", false, Own)
	// the host edits one in place, and replaces another by rename
	write(t, d+"/p/.env", "HOST=1\n")
	write(t, d+"/p/new", pemKey)
	if err := os.Rename(d+"/p/new", d+"/p/key.pem"); err != nil {
		t.Fatal(err)
	}
	want(t, j, d+"/p", ".env", true, Name)
	want(t, j, d+"/p", "key.pem", true, Contents)
	l = Open(file)
	l.Drop(stamp("p/id_rsa"))
	if err := l.Save(); err != nil {
		t.Fatal(err)
	}
	want(t, New(host.FS{}, Open(file), ""), d+"/p", "id_rsa", true, Name)
	var none *Ledger
	none.Note(stamp("p/.env"))
	none.Drop(stamp("p/.env"))
	if none.Has(stamp("p/.env")) || none.Save() != nil {
		t.Error("no record has something")
	}
}

func TestLedgerIsBounded(t *testing.T) {
	l := Open(t.TempDir() + "/own")
	for i := range maxOwn + 10 {
		l.Note(host.Stamp{Type: host.File, Ino: uint64(i + 1), Changed: int64(i)})
	}
	if len(l.have) > maxOwn || l.Has(host.Stamp{Type: host.File, Ino: 1}) ||
		!l.Has(host.Stamp{Type: host.File, Ino: maxOwn + 10, Changed: maxOwn + 9}) {
		t.Errorf("%d entries", len(l.have))
	}
}

func FuzzLedger(f *testing.F) {
	f.Add(header + "1 2 3 4 5 6\n")
	f.Add(header + "1 2 3\n\n9")
	f.Fuzz(func(t *testing.T, s string) {
		for id, st := range parse(bufio.NewReader(strings.NewReader(s))) {
			if !strings.HasPrefix(s, header) || identify(st) != id {
				t.Fatalf("%v is %v", id, st)
			}
		}
	})
}
