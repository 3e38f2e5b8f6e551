// Package guard knows which names in a writable project would make the host run code or hand out
// secrets, and what may be written to them. It is pure: names and file contents in, verdicts out.
// planner asks it which directories need a guard, and the guarded file system asks it about contents.
package guard
