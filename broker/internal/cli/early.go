package cli

import (
	"runtime"
	"slices"

	"sbx/shared/plan"
	"sbx/shared/stage"
)

// prepare clones process 1 before anything else is done: this process is small then, which makes it cheap,
// and the kernel makes the namespaces while the broker plans. If it cannot be, Start tries again and says
// why. Whatever comes, a process 1 without a plan ends with this process.
func (t *term) prepare(args []string) {
	if end := slices.Index(args, "--"); end >= 0 {
		args = args[:end]
	}
	for _, a := range [...]string{"--dry-run", "--help", "-h", "--no-sandbox"} {
		if slices.Contains(args, a) {
			return
		}
	}
	runtime.LockOSThread()                                                                                 // the thread that clones a sandbox must live as long as it does
	t.early, _ = stage.Prepare(plan.Namespaces{User: true, Net: true, IPC: true, UTS: true, Cgroup: true}) // what nearly every sandbox has
}
