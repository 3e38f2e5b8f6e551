//go:build linux

package machine

import (
	"errors"
	"fmt"
	"strconv"
)

// Where the sandbox shows what the machine is made of: sbx, the kernel's image, and the directory of its modules.
const (
	Dir     = "/machine"
	Program = Dir + "/sbx"
	Kernel  = Dir + "/kernel"
	Modules = Dir + "/modules"
)

// What sbx is inside, by its second argument.
const (
	runCommand  = "machine-run"
	execCommand = "machine-exec"
)

// end stands between QEMU's arguments and the program's.
const end = "--"

// The descriptors that QEMU is started with besides the standard ones.
const (
	channelFD = 3
	initrdFD  = 4
	kernelFD  = 5
)

// The kinds of machine that QEMU makes. A microvm has no PCI: the kernel finds its devices by ACPI and virtio_mmio.
const (
	PC      = "pc"
	MicroVM = "microvm"
)

// The ways to run a guest's instructions, as QEMU calls them.
const (
	KVM = "kvm"
	TCG = "tcg"
)

// Spec is what a machine is.
type Spec struct {
	QEMU   string // its path
	Kind   string // PC or MicroVM
	Accel  string // KVM or TCG
	Memory uint64 // of the guest, MiB
	CPUs   int
	Net    bool // a network device that reaches what the sandbox reaches
}

// overhead is how much memory QEMU takes for itself at most, MiB, with a kernel unpacked for an emulated processor.
const overhead = 256

// least is how much memory a guest needs to start, MiB.
const least = 256

// Addresses of a guest's network, which is the QEMU process's own: of TEST-NET-1 (RFC 5737), which nobody has.
const (
	guestNet     = "192.0.2.0/24"
	guestAddress = "192.0.2.15"
	guestGateway = "192.0.2.2"
)

// netOption is among QEMU's arguments where there is a network.
const netOption = "-netdev"

// name9P is the tag of the file system that QEMU serves.
const name9P = "sbx"

// qemu are the arguments that QEMU is started with, its path first (qemu(1)).
func (s Spec) qemu() []string {
	bus, kind, cpu, more := "-pci", PC+",usb=off,vmport=off", "max,la57=off", " no_timer_check"
	if s.Kind == MicroVM {
		bus, kind = "-device", "microvm,acpi=on,rtc=on,pit=on,pic=on"
	}
	if s.Accel == KVM {
		cpu = "host"
	}
	args := []string{s.QEMU, "-nodefaults", "-no-user-config", "-no-reboot", "-display", "none", "-parallel", "none",
		"-sandbox", "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny",
		"-M", kind, "-accel", s.Accel, "-cpu", cpu, "-smp", strconv.Itoa(s.CPUs),
		"-m", strconv.FormatUint(s.Memory, 10) + "M",
		"-kernel", "/proc/self/fd/" + strconv.Itoa(kernelFD), "-initrd", "/proc/self/fd/" + strconv.Itoa(initrdFD),
		"-append", "console=ttyS0 quiet panic=-1 reboot=t rdinit=" + initName + more,
		"-chardev", "stdio,id=console,signal=off", "-serial", "chardev:console",
		"-fsdev", "local,id=root,path=/,security_model=none,multidevs=remap",
		"-device", "virtio-9p" + bus + ",fsdev=root,mount_tag=" + name9P,
		"-chardev", "socket,id=channel,fd=" + strconv.Itoa(channelFD),
		"-device", "virtio-serial" + bus + ",max_ports=2", "-device", "virtserialport,chardev=channel,nr=1"}
	if s.Net {
		device := "virtio-net" + bus + ",netdev=net"
		if s.Kind == PC {
			device += ",romfile="
		}
		return append(args, netOption, "user,id=net,ipv6=off,net="+guestNet+",dhcpstart="+guestAddress+
			",host="+guestGateway, "-device", device)
	}
	return append(args, "-nic", "none")
}

// Argv is what is started in the sandbox in the place of a program, before the arguments of that.
func (s Spec) Argv() []string {
	argv := append([]string{Program, runCommand}, s.qemu()...)
	return append(argv, end)
}

// ExecArgv is what is started in the sandbox, before its arguments, to have another program run in the machine.
func ExecArgv() []string { return []string{Program, execCommand} }

// Size is how much memory and how many processors a machine has: those that limits name, else half of the host's and
// all of its processors. limit is in bytes, percent of one processor; 0 is no limit.
func Size(limit, host uint64, percent, processors int) (memory uint64, cpus int, err error) {
	const mib, most = 1 << 20, 8 << 10
	memory = min(host/2/mib, most)
	if limit > 0 {
		if limit/mib < overhead+least {
			return 0, 0, fmt.Errorf("a virtual machine takes at least %d MiB: %d for its kernel and the program, %d for QEMU",
				overhead+least, least, overhead)
		}
		memory = limit/mib - overhead
	}
	if memory < least {
		return 0, 0, errors.New("this host has too little memory for a virtual machine")
	}
	cpus = max(1, processors)
	if percent > 0 {
		cpus = max(1, min(cpus, (percent+99)/100))
	}
	return memory, cpus, nil
}
