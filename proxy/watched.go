//go:build linux

package main

import (
	"bytes"
	"io"
)

// watched is a body that tells of each secret whose placeholder passes in it, once. Nothing of it is changed or kept:
// gigabytes pass.
type watched struct {
	io.ReadCloser
	list  []*secret // that were not seen yet
	tail  []byte    // of what was read before
	found func(*secret)
}

func (b *watched) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if len(b.list) == 0 || n == 0 {
		return n, err
	}
	longest := 0
	for _, k := range b.list {
		longest = max(longest, len(k.Placeholder), len(k.Key))
	}
	across := append(b.tail, p[:min(n, longest)]...)
	left := b.list[:0]
	for _, k := range b.list {
		if in(across, k.Placeholder) || in(p[:n], k.Placeholder) || in(across, k.Key) || in(p[:n], k.Key) {
			b.found(k)
		} else {
			left = append(left, k)
		}
	}
	b.list = left
	if n >= longest {
		across = p[:n]
	}
	b.tail = append(b.tail[:0], across[max(0, len(across)-longest):]...)
	return n, err
}

func in(text []byte, placeholder string) bool {
	return placeholder != "" && bytes.Contains(text, []byte(placeholder))
}
