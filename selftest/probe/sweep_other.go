//go:build !amd64

package main

func oldCalls() []call { return nil }
