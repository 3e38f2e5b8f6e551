// Package mark finds the marks of decoys in text. It must never change or keep what it looks at. The broker asks it
// about names, arguments and files, sbx-proxy about requests.
package mark

import (
	"encoding/base64"
	"encoding/hex"
	"strings"
)

// Len is that of a mark: 80 random bits in base32, and as long as the part of a cloud's key that tells keys apart.
const Len = 16

// Spread is over how much text a mark that is written in any of the ways of Find reaches, with line breaks in it.
const Spread = 4 * Len

// Mark is that of the decoy at Path.
type Mark struct{ Path, Text string }

// Find says which decoy's mark is in text: as it is, in another case, taken apart by what is no letter or digit, or in
// hexadecimal or base64, which tools break into lines. Nil: none.
func Find(marks []Mark, text string) *Mark {
	if len(marks) == 0 || len(text) < Len {
		return nil
	}
	if m := find(marks, text); m != nil {
		return m
	}
	if whole := lineBreaks().Replace(text); len(whole) < len(text) {
		return find(marks, whole) // once: breaks may be nested as deeply as text is long
	}
	return nil
}

func find(marks []Mark, text string) *Mark {
	kept := strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' {
			return c
		}
		return -1
	}, text)
	bare := strings.ToUpper(kept)
	for i := range marks {
		m := marks[i].Text
		small := strings.ToLower(m)
		if strings.Contains(bare, m) || strings.Contains(bare, strings.ToUpper(hex.EncodeToString([]byte(m)))) ||
			strings.Contains(bare, strings.ToUpper(hex.EncodeToString([]byte(small)))) || coded(kept, m) || coded(kept, small) {
			return &marks[i]
		}
	}
	return nil
}

// lineBreaks takes out how JSON and programs write them.
func lineBreaks() *strings.Replacer { return strings.NewReplacer(`\r`, "", `\n`, "") }

// coded says whether a mark is in text in base64, which has three ways to write it, by where in the text it begins. No
// letter of base32 needs the signs of base64 that are neither letter nor digit, so text is without them.
func coded(text, m string) bool {
	for skip := range 3 {
		code := base64.RawStdEncoding.EncodeToString([]byte(strings.Repeat("\x00", skip) + m))
		from, to := (8*skip+5)/6, (8*(skip+len(m)))/6
		if strings.Contains(text, code[from:to]) {
			return true
		}
	}
	return false
}
