//go:build linux

// Package machine is the virtual machine of the backend vm. QEMU runs inside the sandbox, in the place of the program,
// and serves what the sandbox shows to a guest; the program runs in that guest. So nothing of a policy is said twice.
//
// The outside says what QEMU is started with (Spec). Inside, sbx stands as the program (Main): it makes the initramfs,
// starts QEMU, and carries streams, signals, window sizes and the exit status over one channel (frames). In the guest
// sbx is process 1 (the init), and starts programs by itself once more (the starter).
//
// It must never rely on what a guest says: a guest is the program, and can send any frame. Called by input, which plans
// with a Spec, and by cli, in which sbx finds out that it stands inside.
package machine
