//go:build linux

package launch

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"sbx.example/sbx/broker/internal/program"
)

// hostProgram is the program beside sbx that is linked with what sbx is not: see its own comment (host/main.go).
const hostProgram = "sbx-host"

// FindHost returns the sbx-host that was installed together with sbx.
func FindHost(from program.Source) (program.Program, error) { return findOwn(from, hostProgram) }

// scopePatience bounds the wait for it; it gives up after five seconds itself.
const scopePatience = 6 * time.Second

// Scope has sbx-host ask the user's systemd, on the bus at a path, for a unit with this process that is delegated to
// the user.
func Scope(file program.Program, bus, unit string) error {
	cmd := file.Command("group", "--bus", bus, "--unit", unit, "--pid", strconv.Itoa(os.Getpid()))
	var says bytes.Buffer
	cmd.Stderr = &says
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting %s: %w", file, err)
	}
	timer := time.AfterFunc(scopePatience, func() { _ = cmd.Process.Kill() })
	err := cmd.Wait()
	late := !timer.Stop()
	switch text := bytes.TrimSpace(says.Bytes()); {
	case late:
		return errors.New("systemd did not make the scope in time")
	case err != nil && len(text) > 0:
		return errors.New(string(text))
	case err != nil:
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}

// DropsForwarded has sbx-host look whether the policy of the chain FORWARD drops the packets of --net veth, which root
// alone can do. It changes nothing.
func DropsForwarded(file program.Program) (bool, error) {
	out, err := file.Command("allow-forward", "--dry-run").Output()
	return bytes.Contains(out, []byte("policy of FORWARD: DROP\n")) && bytes.Contains(out, []byte("\nwould run: ")), err
}
