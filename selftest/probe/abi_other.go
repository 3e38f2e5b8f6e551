//go:build linux && !amd64

package main

func actInt80([]string) outcome { return skipped("int80", "amd64: no second ABI is tried here") }

func x32([]string) outcome { return skipped("x32", "amd64: no second ABI is tried here") }

func hasIA32() bool { return false }

func hasX32() bool { return false }
