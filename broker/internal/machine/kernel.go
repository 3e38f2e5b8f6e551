//go:build linux

package machine

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"io"
	"path"
	"slices"
	"strings"
)

// drivers are what a guest needs of its kernel's to have a root file system and a network, by QEMU's arguments: each is
// some milliseconds of the start.
func drivers(qemu []string) []string {
	list := []string{"virtio_pci", "virtio_console", "9pnet_virtio", "9p"}
	if slices.ContainsFunc(qemu, func(a string) bool { return strings.HasPrefix(a, MicroVM+",") }) {
		list[0] = "virtio_mmio"
	}
	if slices.Contains(qemu, netOption) {
		list = append(list, "virtio_net")
	}
	return list
}

// Where an image of x86 says what it is (Documentation/arch/x86/boot.rst).
const (
	bootMagic     = 0x202 // "HdrS"
	bootSectors   = 0x1f1
	bootVersion   = 0x20e // of the kernel, less 0x200
	payloadOffset = 0x248
	payloadLength = 0x24c
	headSize      = 0x260
)

var errImage = errors.New("neither a kernel image for x86 (bzImage) nor a vmlinux")

// Version reads which kernel an image is: the name of its directory of modules.
func Version(image io.ReaderAt) (string, error) {
	head := make([]byte, headSize)
	if _, err := image.ReadAt(head, 0); err != nil {
		return "", errImage
	}
	if bytes.HasPrefix(head, []byte("\x7fELF")) {
		return bannerVersion(image)
	}
	if string(head[bootMagic:bootMagic+4]) != "HdrS" {
		return "", errImage
	}
	text := make([]byte, 256)
	n, _ := image.ReadAt(text, int64(binary.LittleEndian.Uint16(head[bootVersion:]))+0x200)
	return firstWord(text[:n])
}

// banner begins what a kernel says of itself, in its read-only data.
const banner = "Linux version "

// bannerVersion looks for the banner of a vmlinux.
func bannerVersion(image io.ReaderAt) (string, error) {
	const piece = 1 << 20
	buf := make([]byte, piece+256)
	for at := int64(0); ; at += piece {
		n, err := image.ReadAt(buf, at)
		for rest := buf[:n]; ; {
			i := bytes.Index(rest, []byte(banner))
			if i < 0 {
				break
			}
			rest = rest[i+len(banner):]
			if v, err := firstWord(rest); err == nil && v[0] >= '0' && v[0] <= '9' {
				return v, nil
			}
		}
		if err != nil {
			return "", errImage
		}
	}
}

// firstWord is a version at the beginning of a text: it becomes part of a path.
func firstWord(text []byte) (string, error) {
	word, _, _ := bytes.Cut(text[:min(len(text), 128)], []byte(" "))
	v, _, _ := strings.Cut(string(word), "\x00")
	if v == "" || v[0] == '.' || strings.ContainsFunc(v, func(r rune) bool { return r <= ' ' || r > '~' || r == '/' }) {
		return "", errImage
	}
	return v, nil
}

// payload says where an image has its packed kernel, without the length that follows it.
func payload(head []byte) (offset, length int64, ok bool) {
	if len(head) < headSize || string(head[bootMagic:bootMagic+4]) != "HdrS" {
		return 0, 0, false
	}
	sectors := int64(head[bootSectors])
	if sectors == 0 {
		sectors = 4
	}
	offset = (sectors+1)*512 + int64(binary.LittleEndian.Uint32(head[payloadOffset:]))
	length = int64(binary.LittleEndian.Uint32(head[payloadLength:])) - 4
	return offset, length, length > 0
}

// unpacker is the program that unpacks what begins so; "" is none, "gzip" is this one.
func unpacker(begin []byte) string {
	for magic, program := range map[string]string{"\x1f\x8b": "gzip", "\xfd7zXZ\x00": "xz", "\x28\xb5\x2f\xfd": "zstd"} {
		if bytes.HasPrefix(begin, []byte(magic)) {
			return program
		}
	}
	return ""
}

// unpacked reads what is packed, whichever way; run has a program unpack it.
func unpacked(packed []byte, run func(program string, in io.Reader) ([]byte, error)) ([]byte, error) {
	switch by := unpacker(packed); by {
	case "":
		return packed, nil
	case "gzip":
		z, err := gzip.NewReader(bytes.NewReader(packed))
		if err != nil {
			return nil, err
		}
		z.Multistream(false)
		return io.ReadAll(z)
	default:
		return run(by, bytes.NewReader(packed))
	}
}

// module is a driver that is a file.
type module struct {
	name string // as the kernel calls it
	file string // below the directory of modules
}

// resolve finds the files of drivers in modules.dep, in the order in which they are loaded: what another needs is
// before it. A driver that is not there is built in, or the kernel has none.
func resolve(dep string, wanted []string) []module {
	needs, files := map[string][]string{}, map[string]string{}
	for line := range strings.Lines(dep) {
		file, rest, ok := strings.Cut(strings.TrimSpace(line), ":")
		if !ok || !local(file) {
			continue
		}
		name := moduleName(file)
		files[name] = file
		for _, f := range strings.Fields(rest) {
			needs[name] = append(needs[name], moduleName(f))
		}
	}
	var out []module
	seen := map[string]bool{}
	var visit func(name string)
	visit = func(name string) {
		file, ok := files[name]
		if !ok || seen[name] {
			return
		}
		seen[name] = true
		for _, n := range needs[name] {
			visit(n)
		}
		out = append(out, module{name: name, file: file})
	}
	for _, w := range wanted {
		visit(w)
	}
	return out
}

// local says whether a file of modules.dep is below the directory that has it.
func local(file string) bool {
	return file != "" && !path.IsAbs(file) && path.Clean(file) == file && !strings.HasPrefix(file, "..")
}

// moduleName is how the kernel calls the module in a file: kernel/net/9p/9pnet_virtio.ko.xz is 9pnet_virtio.
func moduleName(file string) string {
	name, _, _ := strings.Cut(path.Base(file), ".ko")
	return strings.ReplaceAll(name, "-", "_")
}

// image is what is started of a kernel's image: an emulated processor is slow to unpack it, so that is done before.
func image(packed []byte, run func(program string, in io.Reader) ([]byte, error)) ([]byte, error) {
	offset, length, ok := payload(packed)
	if !ok || offset+length > int64(len(packed)) {
		return nil, errImage
	}
	body := packed[offset : offset+length]
	if unpacker(body) == "" {
		return nil, errors.New("packed by something else than gzip, xz and zstd")
	}
	out, err := unpacked(body, run)
	if err != nil {
		return nil, err
	}
	if !bytes.HasPrefix(out, []byte("\x7fELF")) {
		return nil, errImage
	}
	return out, nil
}
