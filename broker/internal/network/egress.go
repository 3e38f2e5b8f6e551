//go:build linux

package network

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/netns"
	"sbx.example/sbx/broker/internal/program"
)

// Carriers are the programs that carry packets without privileges. The first is preferred: it connects in half the time
// and sends faster, while the other's round trip is a little shorter (docs/benchmarks.md).
func Carriers() [2]string { return [2]string{"pasta", "slirp4netns"} }

// The addresses of the sandbox's device, whichever program serves it.
const (
	device   = "tap0"
	device6  = "tap1" // beside --net veth
	ownAddr  = "10.0.2.100"
	gateway  = "10.0.2.2"
	ownV6    = "fd00::100"
	gateway6 = "fe80::2"
)

// carrierArgs are a program's arguments; net and user are the numbers of its inherited descriptors. Neither lets the
// sandbox reach the loopback of the host, and both confine themselves.
func carrierArgs(name string, net, user int, v6 bool) []string {
	n, u := fmt.Sprintf("/proc/self/fd/%d", net), fmt.Sprintf("/proc/self/fd/%d", user)
	if name == "slirp4netns" {
		args := []string{"--configure", "--mtu=65520", "--disable-host-loopback", "--disable-dns", "--enable-sandbox",
			"--enable-seccomp"}
		if v6 {
			args = append(args, "--enable-ipv6")
		}
		return append(args, "--netns-type=path", n, device)
	}
	args := append(pastaArgs(u, n), "-I", device, "-a", ownAddr, "-n", "255.255.255.0", "-g", gateway)
	if v6 {
		return append(args, "-a", ownV6, "-g", gateway6)
	}
	return append(args, "--ipv4-only")
}

func pastaArgs(user, net string) []string {
	return []string{"--foreground", "--quiet", "--config-net", "--mtu", "65520", "-t", "none", "-u", "none", "-T", "none",
		"-U", "none", "--no-map-gw",
		"--no-dhcp", "--no-dhcpv6", "--no-ra", "--userns", user, "--netns", net}
}

// NoCarrier says that no program is installed that carries packets.
type NoCarrier struct{ what string }

func (e *NoCarrier) Error() string { return e.what }

// Carried waits until there is a way out, or none is wanted.
func (n *Network) Carried() error { return n.carried() }

// carry starts the process that carries packets, and returns when there is a way out.
func (n *Network) carry() error {
	switch n.o.Carrier {
	case "none":
		return nil
	case "veth":
		return n.carryVeth()
	}
	if err := unix.Access("/dev/net/tun", unix.R_OK|unix.W_OK); err != nil {
		return fmt.Errorf("opening /dev/net/tun: %w", err)
	}
	names := Carriers()
	list := names[:]
	if n.o.Carrier != "" {
		list = []string{n.o.Carrier}
	}
	var failed error
	var missing []string
	for _, name := range list {
		file, err := n.o.Programs.Find(name)
		if err != nil {
			missing = append(missing, err.Error())
			continue
		}
		v6 := routesIPv6()
		c := &carrier{name: name, file: file, args: carrierArgs(name, 3, 4, v6), ns: n.ns, up: n.isUp, say: n.lost}
		if failed = c.start(); failed == nil {
			n.car = c
			return nil
		}
	}
	if failed == nil {
		failed = &NoCarrier{strings.Join(missing, "; ")}
	}
	return fmt.Errorf("starting the sandbox's network: %w", failed)
}

// lost tells the user and the record what became of the process that carries packets.
func (n *Network) lost(text string) {
	n.o.Say(text)
	n.o.Note(Event{Op: OpCarry, Failed: true, Reason: text})
}

// Carrier is the program that carries the packets, "" for none.
func (n *Network) Carrier() string {
	if n.veth != nil {
		return "veth"
	}
	if n.car == nil {
		return ""
	}
	return n.car.name
}

// isUp says whether packets have a way out: whether a socket inside finds a route to some address. Nothing is sent.
func (n *Network) isUp() bool {
	fd := int(n.probe.Fd())
	err := unix.Connect(fd, &unix.SockaddrInet4{Port: 9, Addr: [4]byte{192, 0, 2, 1}})
	return err == nil
}

// carrier is the process that carries the sandbox's packets.
type carrier struct {
	name string
	file program.Program
	args []string
	ns   *netns.Network
	up   func() bool
	say  func(string)

	mu      sync.Mutex
	pid     int
	wasUp   bool
	closing bool
	ended   chan struct{}
}

const (
	upPatience  = time.Minute // a busy host loads the kernel's modules and starts a program
	maxRestarts = 3
	// steady is how long it has to run for its earlier ends to be forgotten.
	steady = time.Minute
)

// start runs the program and returns when the device is there. From then on it is started again when it ends, a few
// times; while it is not there neither is the device, and every connection fails.
func (c *carrier) start() error {
	c.ended = make(chan struct{})
	failed := make(chan error, 1)
	go c.keep(failed)
	for end := time.Now().Add(upPatience); ; {
		if c.up() {
			c.mu.Lock()
			c.wasUp = true
			c.mu.Unlock()
			return nil
		}
		select {
		case err := <-failed:
			return err
		case <-time.After(time.Millisecond):
		}
		if time.Now().After(end) {
			c.close()
			return fmt.Errorf("%s made no network within %v", c.name, upPatience)
		}
	}
}

// keep runs the program until it is not to run any more. It dies with the thread that started it, so that thread stays.
func (c *carrier) keep(failed chan error) {
	runtime.LockOSThread()
	defer close(c.ended)
	for n := 1; ; n++ {
		began := time.Now()
		err := c.once()
		if time.Since(began) > steady {
			n = 1
		}
		c.mu.Lock()
		wasUp, closing := c.wasUp, c.closing
		c.mu.Unlock()
		switch {
		case closing:
			return
		case !wasUp:
			failed <- err
			return
		case n > maxRestarts:
			c.say("the network process ended again, so the sandbox has no network any more: " + err.Error())
			return
		}
		c.say("the network process ended, its connections are lost, and is started again: " + err.Error())
		time.Sleep(time.Duration(n) * 100 * time.Millisecond)
	}
}

// once runs the program to its end.
func (c *carrier) once() error {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("opening /dev/null: %w", err)
	}
	defer null.Close()
	r, w, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("making a pipe: %w", err)
	}
	defer r.Close()
	c.mu.Lock()
	if c.closing {
		c.mu.Unlock()
		w.Close()
		return errGone
	}
	pid, err := c.exec([]*os.File{null, w, w, c.ns.Net, c.ns.User})
	if err == nil {
		c.pid = pid
	}
	c.mu.Unlock()
	w.Close()
	if err != nil {
		return fmt.Errorf("starting %s: %w", c.file, err)
	}
	said := &tail{}
	heard := make(chan struct{})
	go func() { said.read(r); close(heard) }()
	var ws syscall.WaitStatus
	for {
		if _, err = syscall.Wait4(pid, &ws, syscall.WUNTRACED, nil); err == syscall.EINTR {
			continue
		}
		// What hangs must not look like a slow network, and its end would be that of all connections.
		if err == nil && ws.Stopped() {
			_ = syscall.Kill(pid, syscall.SIGCONT)
			continue
		}
		break
	}
	c.mu.Lock()
	c.pid = 0
	c.mu.Unlock()
	select {
	case <-heard:
	case <-time.After(time.Second): // a child of its own has the pipe
	}
	if text := said.last(); text != "" {
		return fmt.Errorf("%s %s: %s", c.name, ended(ws), text)
	}
	return fmt.Errorf("%s %s", c.name, ended(ws))
}

// exec starts the program. slirp4netns confines itself only where it is root, which it is in the namespace's own user
// namespace; pasta goes there by itself.
func (c *carrier) exec(files []*os.File) (int, error) {
	env := []string{program.Path}
	if c.name == "slirp4netns" {
		return c.ns.Exec(c.file.File(), append([]string{c.name}, c.args...), env, files)
	}
	fds := make([]uintptr, len(files))
	for i, f := range files {
		fds[i] = f.Fd()
	}
	attr := &syscall.ProcAttr{Dir: "/", Env: env, Files: fds, Sys: &syscall.SysProcAttr{Setsid: true,
		Pdeathsig: syscall.SIGKILL}}
	return c.file.Fork(c.args, attr)
}

func ended(ws syscall.WaitStatus) string {
	if ws.Signaled() {
		return "was ended by signal " + ws.Signal().String()
	}
	return fmt.Sprintf("ended with status %d", ws.ExitStatus())
}

// close ends the program and waits until it is gone.
func (c *carrier) close() {
	c.mu.Lock()
	c.closing = true
	if c.pid != 0 {
		_ = syscall.Kill(c.pid, syscall.SIGKILL)
	}
	c.mu.Unlock()
	<-c.ended
}

// tail keeps the end of what a program says.
type tail struct {
	mu sync.Mutex
	b  []byte
}

func (t *tail) read(r *os.File) {
	buf := make([]byte, 4096)
	for {
		n, err := r.Read(buf)
		t.mu.Lock()
		t.b = append(t.b, buf[:n]...)
		if len(t.b) > 2048 {
			t.b = append([]byte(nil), t.b[len(t.b)-1024:]...)
		}
		t.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// last are the last lines.
func (t *tail) last() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := strings.Split(string(bytes.TrimSpace(t.b)), "\n")
	return strings.Join(lines[max(0, len(lines)-40):], "; ")
}
