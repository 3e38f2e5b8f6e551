// Package planner computes the Plan: request, configuration and host facts in, plan and losses out.
// It must never change anything, start anything or ask anybody; it reads the file system only through
// the FS it is given, so that tests can give it one made of values.
// live calls it before launch, and alone for --dry-run.
package planner
