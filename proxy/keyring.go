//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/godbus/dbus/v5"

	"sbx.example/sbx/shared/proxied"
)

// keyring is the user's own: what speaks freedesktop's Secret Service on the session bus, as GNOME's, KDE's and
// KeePassXC's do. Values cross the bus as they are: it is a socket of the user's, and who listens there may ask the
// keyring itself.
type keyring struct {
	ctx        context.Context
	bus        *dbus.Conn
	session    dbus.ObjectPath
	collection dbus.ObjectPath // the one that the user has chosen for new things
	in, out    *os.File        // values that are kept come from in; those that are fetched go to out
}

// Names of the Secret Service. Methods are those of the interfaces below service.
const (
	service     = "org.freedesktop.secrets"
	servicePath = dbus.ObjectPath("/org/freedesktop/secrets")
	interfaces  = "org.freedesktop.Secret."
	properties  = "org.freedesktop.Secret.Item."
	none        = dbus.ObjectPath("/") // no object: no prompt, no collection
)

// keyringPatience bounds all that is asked of a keyring: it may ask the user.
const keyringPatience = 2 * time.Minute

// inKeyring does something with the keyring on the bus at an address.
func inKeyring(address string, do func(*keyring) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), keyringPatience)
	defer cancel()
	bus, err := dbus.Dial(address, dbus.WithContext(ctx))
	if err == nil {
		defer bus.Close()
		if err = bus.Auth([]dbus.Auth{dbus.AuthExternal(strconv.Itoa(os.Getuid()))}); err == nil {
			err = bus.Hello()
		}
	}
	if err != nil {
		return fmt.Errorf("your session bus cannot be reached: %s", strconv.QuoteToASCII(err.Error()))
	}
	err = do(&keyring{ctx: ctx, bus: bus, in: os.Stdin, out: os.Stdout})
	if ctx.Err() != nil {
		return fmt.Errorf("your keyring has not answered within %v, nor have you: unlock it, and do this again",
			keyringPatience)
	}
	return err
}

// present says whether there is a keyring on the bus, or one that would be started.
func (k *keyring) present() error {
	for _, method := range []string{"ListNames", "ListActivatableNames"} {
		var names []string
		if err := k.bus.BusObject().CallWithContext(k.ctx, "org.freedesktop.DBus."+method, 0).Store(&names); err != nil {
			return err
		}
		if slices.Contains(names, service) {
			return nil
		}
	}
	return errNoKeyring
}

var errNoKeyring = errors.New("there is no keyring on your session bus")

// open finds the user's collection, and has it unlocked: the keyring asks for that by itself.
func (k *keyring) open() error {
	if err := k.present(); err != nil {
		return err
	}
	var unused dbus.Variant
	err := k.call(servicePath, "Service.OpenSession", []any{&unused, &k.session}, "plain", dbus.MakeVariant(""))
	if err == nil {
		err = k.call(servicePath, "Service.ReadAlias", []any{&k.collection}, "default")
	}
	if err != nil {
		return err
	}
	if k.collection == none {
		return errors.New("your keyring has no default collection: make one with its own program, and do this again")
	}
	var opened []dbus.ObjectPath
	prompt := none
	err = k.call(servicePath, "Service.Unlock", []any{&opened, &prompt}, []dbus.ObjectPath{k.collection})
	if err == nil {
		err = k.prompt(prompt)
	}
	if err != nil {
		return err
	}
	var locked dbus.Variant
	err = k.bus.Object(service, k.collection).CallWithContext(k.ctx, "org.freedesktop.DBus.Properties.Get", 0,
		interfaces+"Collection", "Locked").Store(&locked)
	if is, ok := locked.Value().(bool); err == nil && (!ok || is) {
		return errKeyringLocked
	}
	return inItsWords(err)
}

var errKeyringLocked = errors.New("your keyring stayed locked: unlock it, and do this again")

// call calls a method of the keyring's.
func (k *keyring) call(at dbus.ObjectPath, method string, results []any, args ...any) error {
	return inItsWords(k.bus.Object(service, at).CallWithContext(k.ctx, interfaces+method, 0, args...).Store(results...))
}

// inItsWords is an error in the keyring's words, which a terminal takes for nothing else.
func inItsWords(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("your keyring says %s", strconv.QuoteToASCII(err.Error()))
}

// prompt has the keyring ask the user, if it wants to, and waits for the end of that.
func (k *keyring) prompt(at dbus.ObjectPath) error {
	if at == none {
		return nil
	}
	signals := make(chan *dbus.Signal, 16)
	k.bus.Signal(signals)
	defer k.bus.RemoveSignal(signals)
	err := k.bus.AddMatchSignalContext(k.ctx, dbus.WithMatchObjectPath(at), dbus.WithMatchInterface(interfaces+"Prompt"))
	if err == nil {
		err = k.bus.AddMatchSignalContext(k.ctx, dbus.WithMatchInterface("org.freedesktop.DBus"),
			dbus.WithMatchMember("NameOwnerChanged"), dbus.WithMatchArg(0, service))
	}
	if err == nil {
		err = k.call(at, "Prompt.Prompt", nil, "")
	}
	if err != nil {
		return inItsWords(err)
	}
	for s := range signals { // closed with the connection
		switch {
		case s.Name == "org.freedesktop.DBus.NameOwnerChanged":
			return errors.New("your keyring ended before it had asked")
		case s.Path == at && s.Name == interfaces+"Prompt.Completed" && len(s.Body) > 0:
			if dismissed, ok := s.Body[0].(bool); !ok || dismissed {
				return errKeyringLocked
			}
			return nil
		}
	}
	return errors.New("your session bus ended before the keyring had asked")
}

// value is one as the Secret Service passes it.
type value struct {
	Session    dbus.ObjectPath
	Parameters []byte
	Text       []byte
	Type       string
}

// attributes are those by which a value is found.
func attributes(name string) map[string]string {
	return map[string]string{"application": "sbx", "credential": name}
}

// items are those that hold a credential's value: one, or none.
func (k *keyring) items(name string) (found []dbus.ObjectPath, _ error) {
	return found, k.call(k.collection, "Collection.SearchItems", []any{&found}, attributes(name))
}

// keep reads a value and keeps it under a name. It is asked for once the keyring is open.
func (k *keyring) keep(name string) error {
	if err := k.open(); err != nil {
		return err
	}
	text, err := ask(k.in, "value of "+name+" (it is not shown): ")
	if err == nil {
		err = checkValue(text)
	}
	if err != nil {
		return err
	}
	item, prompt := none, none
	err = k.call(k.collection, "Collection.CreateItem", []any{&item, &prompt}, map[string]dbus.Variant{
		properties + "Label":      dbus.MakeVariant("sbx: " + name),
		properties + "Attributes": dbus.MakeVariant(attributes(name)),
	}, value{k.session, []byte{}, text, "text/plain"}, true)
	if err != nil {
		return err
	}
	return k.prompt(prompt)
}

// fetch writes a value to a pipe of sbx's, which is another sbx-proxy's.
func (k *keyring) fetch(name string) error {
	if err := k.open(); err != nil {
		return err
	}
	found, err := k.items(name)
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return fmt.Errorf("your keyring has no value of it: sbx secret add %s keeps one", name)
	}
	var v value
	if err := k.call(found[0], "Item.GetSecret", []any{&v}, k.session); err != nil {
		return err
	}
	if err := checkValue(v.Text); err != nil {
		return err
	}
	_, err = k.out.Write(v.Text)
	return err
}

// forget takes a value out of the keyring.
func (k *keyring) forget(name string) error {
	if err := k.open(); err != nil {
		return err
	}
	found, err := k.items(name)
	if err != nil {
		return err
	}
	for _, item := range found {
		prompt := none
		if err := k.call(item, "Item.Delete", []any{&prompt}); err != nil {
			return err
		}
		if err := k.prompt(prompt); err != nil {
			return err
		}
	}
	return nil
}

// keyringVerb is what a command line asks of the keyring; nil: nothing.
func keyringVerb(args []string) func() error {
	verbs := map[string]func(*keyring, string) error{"keep": (*keyring).keep, "fetch": (*keyring).fetch,
		"forget": (*keyring).forget}
	switch {
	case len(args) == 2 && args[0] == "keyring":
		return func() error { return inKeyring(args[1], (*keyring).present) }
	case len(args) == 3 && verbs[args[0]] != nil:
		return func() error {
			return inKeyring(args[1], func(k *keyring) error { return verbs[args[0]](k, args[2]) })
		}
	}
	return nil
}

// status is the exit status for an error.
func status(err error) int {
	if errors.Is(err, errNoKeyring) {
		return proxied.StatusNoKeyring
	}
	return 1
}
