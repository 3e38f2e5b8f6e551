package policycmd

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/session"
	"sbx.example/sbx/shared/proxied"
	"sbx.example/sbx/shared/turn"
)

// chooseStore says where a typed value is kept, where --store does not: in the keyring, if the session bus has one.
func (t Commands) chooseStore(c *credentialCall) error {
	if c.Store != "" || !c.Sealed() || c.Login != "" {
		return nil
	}
	bus, err := t.bus()
	if bus == "" || err != nil {
		return err
	}
	switch status, err := t.proxyStatus(c, "keyring", bus); {
	case err != nil:
		return err
	case status == 0:
		c.Store = policy.Keyring
	case status != proxied.StatusNoKeyring: // there may be one: nothing is kept elsewhere instead
		return &planner.Refusal{What: "nothing was changed", Hint: notThere}
	}
	return nil
}

const notThere = "--store file seals the value in a file instead"

// bus is the address of the session bus.
func (t Commands) bus() (string, error) {
	bus, err := host.SessionBus(t.Env)
	if err != nil {
		return "", &planner.Refusal{What: "looking for a keyring", Err: err, Hint: notThere}
	}
	return bus, nil
}

// keyring has a value kept in the keyring, or forgotten.
func (t Commands) keyring(c *credentialCall, verb string) error {
	bus, err := t.bus()
	if err == nil && bus == "" {
		err = &planner.Refusal{What: "there is no way to a keyring: DBUS_SESSION_BUS_ADDRESS is not set", Hint: notThere}
	}
	if err != nil {
		return err
	}
	return t.proxy(c, verb, bus, c.Name)
}

// forgetElsewhere has the value forgotten that a credential had before, where the new one has not taken its place.
func (t Commands) forgetElsewhere(c *credentialCall, was policy.Credential) error {
	switch {
	case was.Store == policy.Keyring && c.Store != policy.Keyring:
		if t.keyring(c, "forget") != nil {
			return &planner.Refusal{What: "the credential is changed, and its old value is still in your keyring",
				Hint: "remove \"sbx: " + c.Name + "\" there"}
		}
	case was.Sealed() && !c.Sealed():
		return c.removeSealed()
	}
	return nil
}

// removeSealed removes the file of a value, if there is one, and the folder of a login. Sessions that run keep no more
// of a login.
func (c *credentialCall) removeSealed() error {
	dir, err := c.dir()
	if err == nil {
		err = turn.End(dir, c.Name)
	}
	if err == nil {
		err = c.removeFolder()
	}
	return err
}

// removeFolder removes the folder of a login. Programs of sessions that run may write there meanwhile, so it gets
// another name first: the next login begins without it.
func (c *credentialCall) removeFolder() error {
	all := filepath.Join(c.src.TrustDir, policy.LoginsFolder)
	aside := filepath.Join(all, ".removed-"+c.Name)
	err := session.RemoveTree(aside) // what an earlier try has left
	if err == nil {
		err = os.Rename(filepath.Join(all, c.Name), aside)
	}
	if err == nil {
		err = session.RemoveTree(aside)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing the folder of credential %s: %w", c.Name, err)
	}
	return nil
}
