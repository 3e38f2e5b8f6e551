//go:build linux && !amd64

package main

func oldCalls() []call { return nil }
