// Package host reads what this machine, kernel and user offer, as plain values.
// It must never change anything and never decide; a fact that cannot be read is its zero value.
// nearly all of the broker uses it.
package host
