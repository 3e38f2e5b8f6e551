//go:build linux

// Package vm tests sbx on hosts that this machine is not: it boots throw-away virtual machines with stock Debian
// kernels under QEMU, by KVM where that works and by emulation elsewhere. A machine has this host's /usr, read-only, a
// copy of its /etc and a disk of its own, an ordinary user, and what the kernel is to be like: with or without user
// namespaces for ordinary users, with Yama, AppArmor and delegated control groups. The scripts in testdata say lines
// that begin with "pass:", "FAIL:" or "missing:", and their output is all that comes back.
package vm
