//go:build linux

package bwrap

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/plan"
)

// TestLoadIsBounded: a descriptor that goes on for ever takes no memory without end. What fits is read whole.
func TestLoadIsBounded(t *testing.T) {
	for _, size := range []int{0, 1 << 20, mostData, mostData + 1, 3 * mostData} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		written := make(chan int)
		go func() {
			n, _ := w.Write(bytes.Repeat([]byte{'x'}, size))
			w.Close()
			written <- n
		}()
		data, err := load(int(r.Fd()))
		r.Close()
		n := <-written
		switch fits := size <= mostData; {
		case fits && (err != nil || len(data) != size):
			t.Errorf("%d bytes: %d, %v", size, len(data), err)
		case !fits && (err != unix.EFBIG || n > mostData+128<<10): // what is in the pipe, and one read
			t.Errorf("%d bytes: %d were taken, %v", size, n, err)
		}
	}
}

// TestDataIsBounded: files that fit one by one may be too much together.
func TestDataIsBounded(t *testing.T) {
	half := func(int) ([]byte, error) { return make([]byte, mostData/2), nil }
	for n, fits := range map[int]bool{2: true, 3: false} {
		d := &drawing{host: host{load: half}, view: view{host: tree{}, top: map[string]int{}}}
		d.mount(plan.Mount{Kind: plan.Tmpfs, Target: "/"}, &layer{target: "/", own: true})
		var err error
		for range n {
			err = d.content(&operation{do: fileCopy, dest: "/f", perms: -1}, &plan.Mount{})
		}
		if fits && err != nil || !fits && (err == nil || !strings.HasSuffix(err.Error(), "/f: File too large")) {
			t.Errorf("%d halves: %v", n, err)
		}
	}
}
