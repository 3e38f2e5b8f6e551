// Package hint says what to do about an error, and with which status sbx ends because of it. It prints nothing.
// The commands call it, and broker/sandbox for programs of others.
package hint
