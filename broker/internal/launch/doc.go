// Package launch carries a Plan out and looks after what runs: terminal, signals, time-out, exit
// status, tear-down. It must never decide what is in the sandbox; the Plan says everything.
// cli and the Go API call it, once per sandbox.
package launch
