package prompt

import (
	"bytes"
	"strconv"
	"strings"
)

// plainKeys gives each key that a terminal sends as a sequence the byte that it is without. A program that waits for an
// answer may have switched that on: kitty's keyboard protocol and xterm's modifyOtherKeys do it for Escape and Ctrl-C,
// or for every key. What is not understood stays, and counts as pasted.
func plainKeys(b []byte) []byte {
	var out []byte
	for len(b) > 0 {
		key, n := keySequence(b)
		if n == 0 {
			key, n = b[:1], 1
		}
		out, b = append(out, key...), b[n:]
	}
	return out
}

// keySequence reads the sequence of n bytes at the beginning of b: CSI KEY[:SHIFTED[:…]][;MODIFIERS[:EVENT][;…]]u or
// CSI 27;MODIFIERS;KEY~. The key is empty where one was let go or repeats, and for Shift and its like alone.
func keySequence(b []byte) (key []byte, n int) {
	rest, ok := bytes.CutPrefix(b, []byte("\x1b["))
	end := bytes.IndexFunc(rest, func(r rune) bool { return !strings.ContainsRune("0123456789:;", r) })
	if !ok || end <= 0 {
		return nil, 0
	}
	fields := strings.Split(string(rest[:end]), ";")
	switch {
	case rest[end] == 'u':
	case rest[end] == '~' && len(fields) == 3 && fields[0] == "27":
		fields[0] = fields[2]
	default:
		return nil, 0
	}
	fields = append(fields, "")
	k, shifted, modifiers, event := number(fields[0], 0, 0), number(fields[0], 1, 0), number(fields[1], 0, 1),
		number(fields[1], 1, 1)
	n = len("\x1b[") + end + 1
	const shift, control, locks = 1, 4, 64 | 128
	switch m := (modifiers - 1) &^ locks; {
	case event != 1 || k >= 0xe000: // keys without letters
		return nil, n
	case m == shift && shifted != 0:
		k = shifted
	case m == shift && k >= 'a' && k <= 'z':
		k -= 'a' - 'A'
	case m == control && k >= 'a' && k <= 'z':
		k &= 0x1f
	case m != 0 && m != shift:
		return nil, 0
	}
	if k < 1 || k > 0x7f { // no key for a question
		return nil, 0
	}
	return []byte{byte(k)}, n
}

// number is one of the numbers between colons; without stands for one that is left out.
func number(field string, i, without int) int {
	if list := strings.Split(field, ":"); i < len(list) && list[i] != "" {
		if n, err := strconv.Atoi(list[i]); err == nil {
			return n
		}
		return -1
	}
	return without
}
