// Package decoy makes fake secrets with a mark that stands in no other file, and notices who opens one before anything
// of it is read. It must never look at the secrets themselves: what stands in their place is made of their names and of
// random numbers. Package input puts them into the plan's input, live watches them and says what follows.
package decoy
