package launch

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/program"
)

// libexec are where packages and "make install" put what belongs to sbx, for a program of others that runs sandboxes.
var libexec = [...]string{"/usr/libexec/sbx/", "/usr/local/libexec/sbx/"}

// FindProxy returns the sbx-proxy that was, likewise.
func FindProxy(from program.Source) (program.Program, error) { return findOwn(from, "sbx-proxy") }

func findOwn(from program.Source, name string) (program.Program, error) {
	p, err := from.Own(name)
	for _, dir := range libexec {
		file := dir + name
		if !errors.Is(err, program.ErrMissing) {
			break
		}
		found, e := program.Roots(file)
		switch {
		case e == nil:
			return found, nil
		case !errors.Is(e, unix.ENOENT):
			return p, fmt.Errorf("%s is not used: %w", file, e)
		}
	}
	return p, err
}
