// Package setting changes one setting in the text of a configuration file, and leaves the rest as people wrote it; it
// makes the first such text for a project. It reads and writes no file. command calls it.
package setting
