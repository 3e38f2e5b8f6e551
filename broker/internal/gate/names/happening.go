//go:build linux

package names

// Happening is something that the host did to a name.
type Happening uint8

// The things that happen.
const (
	Made       Happening = iota
	Removed              //
	Moved                // From one name To another
	Modified             //
	Attributes           //
	Written              // closed by somebody who could write
)

// Repeat says what is to be done again. Directories are relative to the root of the file system, "." for itself.
type Repeat struct {
	What          Happening
	Type          uint32 // S_IFMT
	Dir, Name     string
	ToDir, ToName string
}

// Repeater does it. Its requests come from a process that the file system's own pid namespace cannot see.
type Repeater func(Repeat) error
