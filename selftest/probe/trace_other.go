//go:build linux && !amd64

package main

func ptraceRewrite([]string) outcome {
	return skipped("ptracerewrite", "amd64: registers are known for amd64 only")
}
