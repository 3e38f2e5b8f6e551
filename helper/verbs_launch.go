//go:build linux && sbx_launch

package main

// verbs of sbx-helper-suid: it builds sandboxes.
var verbs = [...]verb{{"launch", launch}}
