// Package pathname reads, writes, matches and compares patterns of absolute paths and of abstract sockets, and expands
// the variables that may stand at their start. It is text in, text out: it must never look at the file system or at the
// environment. policy reads its files with it; who has a path and needs a pattern escapes it here.
package pathname
