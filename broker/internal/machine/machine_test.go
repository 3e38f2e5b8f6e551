//go:build linux

package machine

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
)

func TestArguments(t *testing.T) {
	for name, c := range map[string]struct {
		spec Spec
		has  [][]string // arguments one after the other
		not  []string
	}{
		"emulated": {Spec{QEMU: "/q", Kind: PC, Accel: TCG, Memory: 512, CPUs: 2}, [][]string{{"-accel", "tcg"},
			{"-m", "512M"}, {"-smp", "2"}, {"-nic", "none"}, {"-device", "virtio-9p-pci,fsdev=root,mount_tag=sbx"}},
			[]string{"-netdev", "host"}},
		"kvm": {Spec{QEMU: "/q", Kind: MicroVM, Accel: KVM, Memory: 512, CPUs: 1}, [][]string{{"-accel", "kvm"},
			{"-cpu", "host"}, {"-device", "virtio-9p-device,fsdev=root,mount_tag=sbx"}}, []string{"-netdev"}},
		"network": {Spec{QEMU: "/q", Kind: PC, Accel: TCG, Memory: 512, CPUs: 2, Net: true},
			[][]string{{"-device", "virtio-net-pci,netdev=net,romfile="}}, []string{"-nic"}},
	} {
		argv := c.spec.Argv()
		if argv[0] != Program || argv[1] != runCommand || argv[2] != "/q" || argv[len(argv)-1] != end ||
			slices.Index(argv, end) != len(argv)-1 {
			t.Errorf("%s: %q", name, argv)
		}
		for _, pair := range c.has {
			found := false
			for i := range len(argv) - 1 {
				found = found || slices.Equal(argv[i:i+2], pair)
			}
			if !found {
				t.Errorf("%s: no %q in %q", name, pair, argv)
			}
		}
		for _, no := range c.not {
			if slices.Contains(argv, no) {
				t.Errorf("%s: %q in %q", name, no, argv)
			}
		}
	}
}

func TestDrivers(t *testing.T) {
	for _, c := range []struct {
		spec Spec
		want string
	}{{Spec{Kind: PC}, "virtio_pci virtio_console 9pnet_virtio 9p"},
		{Spec{Kind: MicroVM, Net: true}, "virtio_mmio virtio_console 9pnet_virtio 9p virtio_net"}} {
		if got := strings.Join(drivers(c.spec.qemu()), " "); got != c.want {
			t.Errorf("%+v: %s", c.spec, got)
		}
	}
}

func TestSize(t *testing.T) {
	const gib = 1 << 30
	for name, c := range map[string]struct {
		limit, host         uint64
		percent, processors int
		memory              uint64
		cpus                int
	}{
		"no limits":       {0, 8 * gib, 0, 4, 4096, 4},
		"a large host":    {0, 512 * gib, 0, 64, 8192, 64},
		"limits":          {gib, 8 * gib, 150, 4, 1024 - overhead, 2},
		"half of one":     {gib, 8 * gib, 50, 4, 1024 - overhead, 1},
		"more than it is": {0, 8 * gib, 800, 4, 4096, 4},
		"too little":      {256 << 20, 8 * gib, 0, 4, 0, 0},
		"a small host":    {0, 256 << 20, 0, 1, 0, 0},
	} {
		memory, cpus, err := Size(c.limit, c.host, c.percent, c.processors)
		if c.memory == 0 != (err != nil) || err == nil && (memory != c.memory || cpus != c.cpus) {
			t.Errorf("%s: %d MiB, %d processors, %v", name, memory, cpus, err)
		}
	}
}

// header makes what a bzImage begins with, packed.
func header(version string, packed []byte) []byte {
	b := make([]byte, 2*512)
	b[bootSectors] = 1
	copy(b[bootMagic:], "HdrS")
	binary.LittleEndian.PutUint16(b[bootVersion:], 0x100)
	copy(b[0x300:], version)
	binary.LittleEndian.PutUint32(b[payloadOffset:], 16)
	binary.LittleEndian.PutUint32(b[payloadLength:], uint32(len(packed)+4))
	return append(append(append(b, make([]byte, 16)...), packed...), "size"...)
}

func TestVersion(t *testing.T) {
	vmlinux := func(text string) []byte {
		return append(append([]byte("\x7fELF"), bytes.Repeat([]byte{0}, 3<<20)...), text...)
	}
	for name, c := range map[string]struct {
		image []byte
		want  string
	}{
		"bzImage":          {header("6.1.0-50-amd64 (debian@x) #1", nil), "6.1.0-50-amd64"},
		"vmlinux":          {vmlinux("Linux version 6.1.0-50-amd64 (debian)"), "6.1.0-50-amd64"},
		"its format first": {vmlinux("Linux version %s (%s)\x00Linux version 7.3.4 (x)"), "7.3.4"},
		"a way out":        {header("../../etc x", nil), ""},
		"no version":       {vmlinux(""), ""},
		"no image":         {bytes.Repeat([]byte("x"), 4096), ""},
		"nothing":          {nil, ""},
	} {
		v, err := Version(bytes.NewReader(c.image))
		if v != c.want || c.want == "" != (err != nil) {
			t.Errorf("%s: %q, %v", name, v, err)
		}
	}
}

func TestImageIsUnpacked(t *testing.T) {
	run := func(program string, in io.Reader) ([]byte, error) {
		b, err := io.ReadAll(in)
		return append([]byte("\x7fELF by "+program+" "), b...), err
	}
	got, err := image(header("6.1", []byte("\x28\xb5\x2f\xfdpacked")), run)
	if string(got) != "\x7fELF by zstd \x28\xb5\x2f\xfdpacked" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	for name, text := range map[string][]byte{"not packed": header("6.1", []byte("plain")), "cut off": header("6.1",
		[]byte("\x28\xb5\x2f\xfd"))[:1030], "none": []byte("x")} {
		if _, err := image(text, run); err == nil {
			t.Errorf("%s: unpacked", name)
		}
	}
}

func TestModulesAreInOrder(t *testing.T) {
	dep := `kernel/fs/9p/9p.ko.xz: kernel/net/9p/9pnet.ko.xz kernel/fs/netfs/netfs.ko.xz
kernel/net/9p/9pnet.ko.xz:
kernel/fs/netfs/netfs.ko.xz: kernel/a-b.ko.xz
kernel/a-b.ko.xz: kernel/fs/netfs/netfs.ko.xz
/etc/virtio_pci.ko:
../virtio_net.ko:
kernel/other.ko:
`
	var names []string
	for _, m := range resolve(dep, []string{"virtio_pci", "virtio_net", "9p"}) {
		names = append(names, m.name)
	}
	if want := []string{"9pnet", "a_b", "netfs", "9p"}; !slices.Equal(names, want) {
		t.Errorf("%q, not %q", names, want)
	}
}

// archived reads an archive of cpio's: what each name holds.
func archived(t *testing.T, b []byte) (names []string, files map[string]string) {
	t.Helper()
	files = map[string]string{}
	pad := func(n int) int { return (n + 3) &^ 3 }
	for at := 0; ; {
		if len(b) < at+110 || string(b[at:at+6]) != "070701" {
			t.Fatalf("no entry at %d of %d", at, len(b))
		}
		field := func(i int) int {
			n, err := strconv.ParseUint(string(b[at+6+8*i:at+14+8*i]), 16, 32)
			if err != nil {
				t.Fatal(err)
			}
			return int(n)
		}
		name := string(b[at+110 : at+110+field(11)-1])
		body := pad(at + 110 + field(11))
		if name == "TRAILER!!!" {
			return names, files
		}
		names, files[name] = append(names, name), string(b[body:body+field(6)])
		at = pad(body + field(6))
	}
}

// elfProgram is an ELF file whose only segment ends after n bytes; with a loader where it is linked dynamically.
func elfProgram(t *testing.T, n uint64, loader bool) []byte {
	t.Helper()
	var b bytes.Buffer
	head := elf.Header64{Ident: [16]byte{0x7f, 'E', 'L', 'F', 2, 1, 1}, Type: 2, Machine: 62, Version: 1, Phoff: 64,
		Ehsize: 64, Phentsize: 56, Phnum: 1}
	segments := []elf.Prog64{{Type: uint32(elf.PT_LOAD), Filesz: n}}
	if loader {
		segments, head.Phnum = append(segments, elf.Prog64{Type: uint32(elf.PT_INTERP)}), 2
	}
	for _, x := range []any{head, segments} {
		if err := binary.Write(&b, binary.LittleEndian, x); err != nil {
			t.Fatal(err)
		}
	}
	return append(b.Bytes(), bytes.Repeat([]byte("x"), 1000)...)
}

func TestInitramfs(t *testing.T) {
	var b bytes.Buffer
	dir := fstest.MapFS{"modules.dep": {Data: []byte("k/9p.ko.zst:\n")},
		"k/9p.ko.zst": {Data: []byte("\x28\xb5\x2f\xfd")}}
	run := func(program string, _ io.Reader) ([]byte, error) { return []byte("by " + program), nil }
	self := elfProgram(t, 301, false)
	if err := initramfs(&b, bytes.NewReader(self), dir, []string{"9p"}, run); err != nil {
		t.Fatal(err)
	}
	names, files := archived(t, b.Bytes())
	want := []string{"dev", "proc", "sys", "root", "drivers", "machine-init", "drivers/00-9p"}
	if !slices.Equal(names, want) {
		t.Errorf("%q, not %q", names, want)
	}
	if files["drivers/00-9p"] != "by zstd" || files["machine-init"] != string(self[:301]) {
		t.Errorf("%q", files)
	}
	if err := initramfs(io.Discard, bytes.NewReader(elfProgram(t, 301, true)), dir, nil, run); err == nil {
		t.Error("a program that wants libraries was taken")
	}
}

const mountinfo = `1 0 0:1 / / ro,relatime - tmpfs tmpfs rw
2 1 0:2 / /etc rw,relatime shared:1 - tmpfs tmpfs rw,size=1024k
3 1 0:3 / /etc ro,relatime shared:2 - overlay overlay rw
4 1 0:4 / /dev ro - tmpfs tmpfs rw
5 4 0:5 / /dev/shm rw,noexec shared:3 - tmpfs tmpfs rw
6 4 0:6 /null /dev/null rw - devtmpfs devtmpfs rw
7 1 0:7 / /tmp rw - tmpfs tmpfs rw
8 7 0:8 /p /tmp/my\040project rw - ext4 /dev/vda rw
9 8 0:8 /p /tmp/my\040project/.git ro - ext4 /dev/vda rw
10 7 0:9 / /tmp/t rw - tmpfs tmpfs rw
11 10 0:8 /x /tmp/t/x ro - ext4 /dev/vda rw
12 1 0:10 / /proc rw - proc proc rw
13 12 0:11 / /proc/keys rw - tmpfs tmpfs rw
`

func TestPlaces(t *testing.T) {
	all := mounts(mountinfo)
	list := temporary(all)
	got := map[string][]string{}
	for _, m := range list {
		got[m.at] = nil
		for _, s := range served(m.at, all, list) {
			got[m.at] = append(got[m.at], string(s))
		}
		if m.noExe != (m.at == "/dev/shm") {
			t.Errorf("%s: noexec is %v", m.at, m.noExe)
		}
	}
	want := map[string][]string{"/dev/shm": nil, "/tmp": {"/tmp/my project"}, "/tmp/t": {"/tmp/t/x"}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%q, not %q", got, want)
	}
}

// Whatever comes, a frame is either one that was written so, or an error.
func FuzzFrames(f *testing.F) {
	var b bytes.Buffer
	w := &writer{out: &b}
	for k := kindConfig; k < kinds; k++ {
		if err := w.write(k, 7, []byte{1}, []byte("body")); err != nil {
			f.Fatal(err)
		}
	}
	f.Add(b.Bytes())
	f.Add([]byte{byte(kindData), 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, in []byte) {
		r := bytes.NewReader(in)
		var again bytes.Buffer
		for {
			f, err := readFrame(r, maxSaid)
			if err != nil {
				break
			}
			if err = (&writer{out: &again}).write(f.kind, f.program, f.body); err != nil {
				t.Fatal(err)
			}
			if i, rest, err := f.stream(); err == nil && (i > 2 || len(rest)+1 != len(f.body)) {
				t.Fatalf("stream %d of %q", i, f.body)
			}
		}
		if !bytes.HasPrefix(in, again.Bytes()) {
			t.Fatalf("%q was read as %q", in, again.Bytes())
		}
	})
}

// A guest can say anything: the host takes no more of it than a window, and ends no program but its own.
func FuzzGuest(f *testing.F) {
	var b bytes.Buffer
	w := &writer{out: &b}
	for k := kindConfig; k < kinds; k++ {
		err := errors.Join(w.write(k, first, []byte{1}, []byte("out")), w.write(k, first, []byte(`{"Status":3}`)))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b.Bytes())
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		h := &host{w: &writer{out: io.Discard}, channel: bytes.NewReader(in), running: map[uint32]*running{},
			ready: make(chan struct{}), listens: make(chan struct{}), gone: make(chan struct{})}
		r := &running{input: newCredit(), output: [3]*queue{1: newQueue(), 2: newQueue()}, exit: make(chan Exit, 1)}
		h.running[first] = r
		h.serve()
		for _, q := range r.output[1:] {
			if q.bytes > window+maxSaid {
				t.Fatalf("%d bytes wait", q.bytes)
			}
		}
		select {
		case e := <-r.exit:
			if e = e.clean(); e.Status < 0 || e.Status > 255 || e.Signal < 0 || e.Signal > 64 {
				t.Fatalf("%+v", e)
			}
		default:
		}
	})
}

func TestExecutableIsFound(t *testing.T) {
	if status, why := become([]string{"no-such-program"}, []string{"PATH=/usr/bin:/bin"}); status != 127 || why == "" {
		t.Errorf("%d, %s", status, why)
	}
	if status, why := become([]string{"/etc/passwd"}, nil); status != 126 || !strings.Contains(why, "permission") {
		t.Errorf("%d, %s", status, why)
	}
}
