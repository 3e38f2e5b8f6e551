package plan

import "path"

// TmpMode is the mode of an empty place at a path.
func TmpMode(p string) uint32 {
	switch path.Base(p) {
	case "tmp", "shm":
		return 0o1777
	case "gnupg": // which warns of any other
		return 0o700
	}
	return 0o755
}
