//go:build linux

package credential

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sbx.example/sbx/selftest/need"
)

// TestJavaTrusts has Java's own tool make a list and read what was added to it. A list with another byte is refused.
func TestJavaTrusts(t *testing.T) {
	need.Tool(t, "keytool", "openssl")
	dir := t.TempDir()
	run := func(args ...string) string {
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Dir = dir
		out, _ := cmd.CombinedOutput()
		return string(out)
	}
	for _, name := range []string{"one", "two"} {
		run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "9",
			"-keyout", name+".key", "-out", name+".pem", "-subj", "/CN="+name)
	}
	run("keytool", "-importcert", "-noprompt", "-storetype", "JKS", "-keystore", "store", "-storepass", javaPassword,
		"-alias", "first", "-file", "one.pem")
	read := func(name string) []byte {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	list := func(store []byte) string {
		if err := os.WriteFile(filepath.Join(dir, "more"), store, 0o600); err != nil {
			t.Fatal(err)
		}
		return run("keytool", "-list", "-v", "-keystore", "more", "-storepass", javaPassword)
	}
	more, err := trustedByJava(read("store"), string(read("two.pem")))
	if err != nil {
		t.Fatal(err)
	}
	said := list(more)
	for _, want := range []string{"contains 2 entries", "Owner: CN=one", "Owner: CN=two", "trustedCertEntry"} {
		if !strings.Contains(said, want) {
			t.Errorf("%q is not said: %s", want, said)
		}
	}
	if said := list(bytes.Replace(more, []byte("sbx"), []byte("abx"), 1)); !strings.Contains(said, "tampered with") {
		t.Errorf("one that was changed: %s", said)
	}
}

func TestNotJavas(t *testing.T) {
	pem := "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
	store := append([]byte{0xfe, 0xed, 0xfe, 0xed, 0, 0, 0, 2, 0, 0, 0, 0}, make([]byte, 20)...)
	if _, err := trustedByJava(store, pem); err != nil {
		t.Error(err)
	}
	for name, c := range map[string]struct {
		store []byte
		pem   string
	}{
		"PKCS 12": {append([]byte{0x30, 0x82}, make([]byte, 40)...), pem}, "cut": {store[:31], pem}, "empty": {nil, pem},
		"no certificate":  {store, "x"},
		"another version": {append([]byte{0xfe, 0xed, 0xfe, 0xed, 0, 0, 0, 1}, store[8:]...), pem},
	} {
		if _, err := trustedByJava(c.store, c.pem); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}
