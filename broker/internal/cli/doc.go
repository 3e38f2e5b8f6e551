// Package cli is what a person types and reads: one option table, the commands, all printing and all
// wiring of the packages below it. It must never contain a decision about what is safe; those live in
// policy, planner and decide. Only broker/main.go calls it.
package cli
