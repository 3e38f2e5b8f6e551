//go:build linux

package input

import "sbx.example/sbx/seccompbpf"

// arch is what this binary's system calls are numbered for.
const arch = seccompbpf.AMD64
