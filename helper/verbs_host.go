//go:build linux && sbx_host

package main

// verbs of sbx-helper-host-suid: it changes something of the host for a sandbox.
var verbs = [...]verb{{"net", network}, {"group", group}}
