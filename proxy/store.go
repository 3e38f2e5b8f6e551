//go:build linux

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"filippo.io/age"
	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"sbx.example/sbx/shared/atomicfile"
	"sbx.example/sbx/shared/proxied"
)

// store is the folder of the user's sealed secrets. Each is encrypted to one key, which lies there under a passphrase
// and, once that was typed, in the kernel's keyring of the user until it is locked or the machine is restarted. To seal
// one takes no passphrase.
type store struct{ dir string }

// keyFile is the key, under the passphrase, in the folder beside NAME.age.
const keyFile = "key"

func (s store) at(name string) string { return filepath.Join(s.dir, name) }

// description is the key's in the keyring.
func (s store) description() string { return "sbx-secrets:" + s.dir }

// seal reads a value and keeps it under a name. The first one makes the key.
func (s store) seal(name string) error {
	public, err := os.ReadFile(s.at(proxied.PublicKey))
	if errors.Is(err, os.ErrNotExist) {
		public, err = s.begin()
	}
	if err != nil {
		return err
	}
	to, err := age.ParseX25519Recipient(string(bytes.TrimSpace(public)))
	if err != nil {
		return fmt.Errorf("reading %s: %w", s.at(proxied.PublicKey), err)
	}
	value, err := ask(os.Stdin, "value of "+name+" (it is not shown): ")
	if err == nil {
		err = checkValue(value)
	}
	if err != nil {
		return err
	}
	return write(s.at(name+".age"), to, value)
}

// write encrypts a text into a file of the user's alone, in one step.
func write(file string, to age.Recipient, text []byte) error {
	b, err := sealTo(to, text)
	if err != nil {
		return err
	}
	return replace(file, b)
}

// sealTo encrypts a text.
func sealTo(to age.Recipient, text []byte) ([]byte, error) {
	var b bytes.Buffer
	w, err := age.Encrypt(&b, to)
	if err == nil {
		_, err = w.Write(text)
	}
	if err == nil {
		err = w.Close()
	}
	return b.Bytes(), err
}

// replace makes a file anew that only the user can read, in one step that survives a power cut.
func replace(file string, text []byte) error {
	return atomicfile.ReplaceDurably(file, 0o600, func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	})
}

// open makes the key where there is none, for what is sealed later.
func (s store) open() error {
	_, err := os.Stat(s.at(proxied.PublicKey))
	if errors.Is(err, os.ErrNotExist) {
		_, err = s.begin()
	}
	return err
}

// begin makes the key, and asks for its passphrase.
func (s store) begin() ([]byte, error) {
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return nil, errors.New("the first secret needs a passphrase for all of them, and there is no terminal to ask on: " +
			"run it on one, or name a command that prints the value (--from-command)")
	}
	defer tty.Close()
	first, err := ask(tty, "a new passphrase for your secrets: ")
	if err != nil {
		return nil, err
	}
	again, err := ask(tty, "the same again: ")
	switch {
	case err != nil:
		return nil, err
	case !bytes.Equal(first, again):
		return nil, errors.New("the two are not the same; nothing was kept")
	case len(first) < shortest:
		return nil, fmt.Errorf("a passphrase has at least %d characters; nothing was kept", shortest)
	}
	id, err := age.GenerateX25519Identity()
	if err != nil {
		return nil, err
	}
	under, err := age.NewScryptRecipient(string(first))
	if err != nil {
		return nil, err
	}
	if err := write(s.at(keyFile), under, []byte(id.String())); err != nil {
		return nil, err
	}
	public := []byte(id.Recipient().String() + "\n")
	if err := replace(s.at(proxied.PublicKey), public); err != nil {
		return nil, err
	}
	return public, s.remember(id)
}

// shortest is how long a passphrase is at least.
const shortest = 8

// unlock asks for the passphrase and puts the key into the keyring.
func (s store) unlock() error {
	f, err := os.Open(s.at(keyFile))
	if errors.Is(err, os.ErrNotExist) {
		return errors.New("there are no sealed secrets yet: sbx secret add makes one")
	}
	if err != nil {
		return err
	}
	defer f.Close()
	phrase, err := ask(os.Stdin, "passphrase of your secrets: ")
	if err != nil {
		return err
	}
	with, err := age.NewScryptIdentity(string(phrase))
	if err != nil {
		return err
	}
	r, err := age.Decrypt(f, with)
	if err != nil {
		return errors.New("that is not the passphrase")
	}
	text, err := io.ReadAll(io.LimitReader(r, 1024))
	if err != nil {
		return err
	}
	id, err := age.ParseX25519Identity(string(text))
	if err != nil {
		return fmt.Errorf("reading %s: %w", s.at(keyFile), err)
	}
	return s.remember(id)
}

// remember puts the key into the keyring, for this user's processes.
func (s store) remember(id *age.X25519Identity) error {
	key, err := unix.AddKey("user", s.description(), []byte(id.String()), unix.KEY_SPEC_USER_KEYRING)
	if err != nil {
		return fmt.Errorf("keeping the key in the kernel's keyring: %w", err)
	}
	// view, read, write, search, link, setattr; of a process that holds the keyring, and of this user
	const all, user = 0x3f << 24, 0x3f << 16
	if err := unix.KeyctlSetperm(key, all|user); err != nil {
		return fmt.Errorf("keeping the key in the kernel's keyring: %w", err)
	}
	return nil
}

// find is the key's number in the keyring.
func (s store) find() (int, error) {
	return unix.KeyctlSearch(unix.KEY_SPEC_USER_KEYRING, "user", s.description(), 0)
}

// lock takes the key out of the keyring.
func (s store) lock() error {
	key, err := s.find()
	if errors.Is(err, unix.ENOKEY) {
		return nil
	}
	if err == nil {
		_, err = unix.KeyctlInt(unix.KEYCTL_INVALIDATE, key, 0, 0, 0)
	}
	return err
}

var errLocked = errors.New("your sealed secrets are locked: sbx secret unlock")

// unlocked says so.
func (s store) unlocked() error {
	if _, err := s.find(); err != nil {
		return errLocked
	}
	return nil
}

// opened is the value that a file holds.
func opened(f io.Reader, dir string) (io.Reader, error) {
	s := store{dir}
	key, err := s.find()
	if err != nil {
		return nil, errLocked
	}
	text := make([]byte, 256)
	n, err := unix.KeyctlBuffer(unix.KEYCTL_READ, key, text, 0)
	if err != nil || n > len(text) {
		return nil, fmt.Errorf("reading the key in the kernel's keyring: %w", err)
	}
	id, err := age.ParseX25519Identity(string(text[:n]))
	if err != nil {
		return nil, fmt.Errorf("reading the key in the kernel's keyring: %w", err)
	}
	r, err := age.Decrypt(f, id)
	if err != nil {
		return nil, errors.New("it was sealed with another key: sbx secret add it again")
	}
	return r, nil
}

// reseal reads what is sealed and seals it to another key: to that of a session which has the same login.
func (s store) reseal(key string, in io.Reader, out io.Writer) error {
	to, err := age.ParseX25519Recipient(key)
	if err != nil {
		return err
	}
	text, err := opened(in, s.dir)
	if err != nil {
		return err
	}
	b, err := io.ReadAll(io.LimitReader(text, maxLogin))
	if err == nil {
		b, err = sealTo(to, b)
	}
	if err == nil {
		_, err = out.Write(b)
	}
	return err
}

// ask reads a line that is not shown, or what a pipe holds.
func ask(f *os.File, question string) ([]byte, error) {
	fd := int(f.Fd())
	if was, err := unix.IoctlGetTermios(fd, unix.TCGETS); err == nil {
		quiet := *was // before it is asked: what is typed at once is not shown either
		quiet.Lflag &^= unix.ECHO
		if err := unix.IoctlSetTermios(fd, unix.TCSETS, &quiet); err != nil {
			return nil, err
		}
		defer func() { _ = unix.IoctlSetTermios(fd, unix.TCSETS, was) }()
		fmt.Fprint(os.Stderr, "sbx: "+question)
		b, err := term.ReadPassword(fd)
		fmt.Fprintln(os.Stderr)
		return b, err
	}
	b, err := io.ReadAll(io.LimitReader(f, maxSecret+2))
	return bytes.TrimRight(b, "\r\n"), err
}
