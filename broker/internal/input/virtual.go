//go:build linux

package input

import (
	"cmp"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/confine"
	"sbx.example/sbx/broker/internal/machine"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/program"
	"sbx.example/sbx/broker/internal/quoting"
	"sbx.example/sbx/broker/internal/request"
)

// emulator is the program that runs virtual machines.
const emulator = "qemu-system-x86_64"

// virtual has the program run in a virtual machine (backend vm), which shows what the sandbox shows.
func (r *Run) virtual(s request.Settings, in *planner.Input) error {
	if !r.VM {
		return nil
	}
	from := "the backend vm (" + s.Origin("sandbox.backend") + ")"
	if err := notVirtual(from, r, s, in); err != nil {
		return err
	}
	spec, kernel, err := Machine(s, in.Facts.Kernel, request.Programs(r.Env, s, in))
	if err != nil {
		return &planner.Refusal{What: from + " cannot be had", Err: err, Hint: "sbx doctor says which backends this host has"}
	}
	self, err := os.Executable()
	if err == nil {
		self, err = filepath.EvalSymlinks(self)
	}
	if err != nil {
		return err
	}
	m := &planner.Machine{Argv: spec.Argv(), Exec: machine.ExecArgv(), Files: []planner.MachineFile{
		{Path: machine.Program, Source: self}, {Path: machine.Kernel, Source: kernel.Image}}}
	spec.Net = true
	m.WithNet = spec.Argv()
	if kernel.Modules != "" {
		m.Files = append(m.Files, planner.MachineFile{Path: machine.Modules, Source: kernel.Modules, Dir: true})
	}
	in.Machine, in.KVM, in.Nested = m, in.KVM || spec.Accel == machine.KVM, false
	in.Losses = append(in.Losses, virtualPrices(spec)...)
	return nil
}

// virtualPrices are what is otherwise in a machine than in the sandbox around it.
func virtualPrices(spec machine.Spec) []planner.Loss {
	list := []planner.Loss{
		{What: "files in a virtual machine", Price: true, Why: "they are served one call at a time (9p): slower, sockets " +
			"and pipes only in /tmp and the like, and locks and watches end at its edge"},
		{What: "who asks", Price: true, Why: "a question and a refusal name " + emulator + ", which opens files for all " +
			"programs of the machine"},
	}
	if spec.Accel == machine.KVM {
		return append(list, planner.Loss{What: "/dev/kvm", Price: true, Why: "QEMU has it, which opens more of the kernel " +
			"to a program that has broken out of the machine", Fix: "vm.accel = \"emulation\" does without"})
	}
	return append(list, planner.Loss{What: "emulation", Price: true, Why: "without KVM all takes about ten times as long"})
}

// notVirtual refuses what would not hold, or not work, in a machine.
func notVirtual(from string, r *Run, s request.Settings, in *planner.Input) error {
	no := func(what string) error {
		return &planner.Refusal{What: what + " cannot be had with " + from, Hint: "leave it out, or take another backend"}
	}
	for _, x := range [...]struct {
		asked bool
		what  string
	}{{r.AsPID1, "--as-pid-1"}, {r.TimeOffset != 0, "--time-offset"}, {r.OnlyNamed(s), "--only or --untrusted"},
		{s.Features.Containers, "--containers"}, {s.FS.NoSymFollow, "fs.no_sym_follow"},
		{r.Idle, "--detach without a command"}, {!s.Network.Loopback, "--no-loopback"},
		{len(s.Network.Publish) > 0, "--publish"}, {len(s.Network.HostPorts) > 0, "--host-port"},
		{len(in.Tools) > 0, "a tool of the settings"}} {
		if x.asked {
			return no(x.what)
		}
	}
	for _, g := range in.Grants {
		if g.Socket || g.Source != "" {
			return no("the socket " + quoting.Quote(g.Path) + " (" + g.Why + ")")
		}
	}
	return nil
}

// guestKernel is what a machine is started with.
type guestKernel struct {
	Image   string
	Modules string // directory of its modules; "" for none
}

// Machine is what the settings and this host come to. release is the host's kernel.
func Machine(s request.Settings, release string, from program.Source) (machine.Spec, guestKernel, error) {
	var none guestKernel
	if runtime.GOARCH != "amd64" {
		return machine.Spec{}, none, refusal("it runs on amd64 alone so far")
	}
	qemu, err := from.Find(emulator)
	if err != nil {
		return machine.Spec{}, none, err
	}
	kernel, err := findKernel(s.VM.Kernel, release)
	if err != nil {
		return machine.Spec{}, none, err
	}
	spec := machine.Spec{QEMU: qemu.File(), Kind: machine.PC, Accel: machine.TCG}
	open := unix.Access("/dev/kvm", unix.R_OK|unix.W_OK)
	switch {
	case s.VM.Accel == "kvm" && open != nil:
		return spec, none, refusal("vm.accel = kvm (" + s.Origin("vm.accel") + "), and /dev/kvm is not open to you: " +
			open.Error())
	case s.VM.Accel != "emulation" && open == nil:
		spec.Kind, spec.Accel = machine.MicroVM, machine.KVM
	}
	if s.VM.Machine != "auto" {
		spec.Kind = s.VM.Machine
	}
	if spec.Kind == machine.MicroVM && spec.Accel == machine.TCG { // the kernel finds no clock in it
		return spec, none, refusal("vm.machine = microvm (" + s.Origin("vm.machine") + ") takes KVM; pc does without")
	}
	memory, percent, total, err := confine.Asked(s)
	if err == nil {
		spec.Memory, spec.CPUs, err = machine.Size(memory, total, percent, runtime.NumCPU())
	}
	return spec, kernel, err
}

type refusal string

func (r refusal) Error() string { return string(r) }

// findKernel finds the image that a setting names, else the host's own, else the newest that there is.
func findKernel(named, release string) (guestKernel, error) {
	list := []string{named}
	if named == "" {
		list = []string{"/boot/vmlinuz-" + release, "/usr/lib/modules/" + release + "/vmlinuz"}
		more, _ := filepath.Glob("/boot/vmlinuz-*")
		slices.SortFunc(more, func(a, b string) int { return -cmp.Compare(changed(a), changed(b)) })
		list = append(list, more...)
	}
	why := error(refusal("there is no kernel image at " + list[0] + "; vm.kernel names one"))
	for _, file := range list {
		f, err := os.Open(file)
		if err != nil {
			if !os.IsNotExist(err) || named != "" {
				why = refusal(err.Error() + "; vm.kernel names one that you may read")
			}
			continue
		}
		defer f.Close()
		version, err := machine.Version(f)
		if err != nil {
			why = refusal(file + " is " + err.Error())
			continue
		}
		real, err := filepath.EvalSymlinks(file)
		if err != nil {
			return guestKernel{}, err
		}
		return guestKernel{Image: real, Modules: modulesOf(real, version)}, nil
	}
	return guestKernel{}, why
}

func changed(file string) int64 {
	st, err := os.Stat(file)
	if err != nil {
		return 0
	}
	return st.ModTime().UnixNano()
}

// modulesOf is the directory of a kernel's modules: that of its image, in the tree that this lies in, or the host's.
func modulesOf(file, version string) string {
	if path.Base(path.Dir(file)) == version {
		return path.Dir(file)
	}
	for _, dir := range []string{path.Join(path.Dir(file), "../lib/modules", version), "/lib/modules/" + version} {
		real, err := filepath.EvalSymlinks(dir)
		if err != nil {
			continue
		}
		if st, err := os.Stat(real); err == nil && st.IsDir() {
			return real
		}
	}
	return ""
}
