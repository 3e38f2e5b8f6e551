//go:build linux && !sbx_launch && !sbx_host

package main

// verbs are what the helper may be asked for. Package sbx-helper-suid has two programs instead, each with its part of
// them alone
// (verbs_launch.go, verbs_host.go).
var verbs = [...]verb{{"launch", launch}, {"net", network}, {"group", group}}
