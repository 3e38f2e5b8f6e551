package guard

import (
	"strings"
	"unicode"
)

// dotGit is the name of a repository's directory.
const dotGit = ".git"

// Fold brings to one the spellings that a case-folding directory takes for equal, and those that git takes for .git
// because HFS+ or NTFS do (git's is_hfs_dotgit and is_ntfs_dotgit).
func Fold(name string) string {
	plain := true
	for i := 0; i < len(name); i++ {
		if c := name[i]; c >= 0x80 || 'A' <= c && c <= 'Z' || c == '~' || c == ':' || c == '\\' {
			plain = false
			break
		}
	}
	if n := len(name); plain && n > 0 && name[n-1] != '.' && name[n-1] != ' ' {
		return name
	}
	var b strings.Builder
	for _, r := range name {
		switch { // the only runes whose full folding is more than one ASCII letter
		case r == 0xdf, r == 0x1e9e:
			b.WriteString("ss")
		case 0xfb00 <= r && r <= 0xfb06:
			b.WriteString([...]string{"ff", "fi", "fl", "ffi", "ffl", "st", "st"}[r-0xfb00])
		default:
			if f := foldRune(r); f >= 0 {
				b.WriteRune(f)
			}
		}
	}
	folded := b.String()
	if base := strings.TrimRight(folded, ". "); base != "" {
		folded = base // as FAT and NTFS store it
	}
	base, _, _ := strings.Cut(folded, ":") // a stream of NTFS
	base, _, _ = strings.Cut(base, `\`)
	if base = strings.TrimRight(base, ". "); base == dotGit || base == "git~1" {
		return dotGit
	}
	return folded
}

func foldRune(r rune) rune {
	switch {
	case r < 0x80:
		return unicode.ToLower(r)
	case r == 0xad, r == 0x34f, r == 0x61c, 0x115f <= r && r <= 0x1160, 0x17b4 <= r && r <= 0x17b5, 0x180b <= r &&
		r <= 0x180f,
		0x200b <= r && r <= 0x200f, 0x202a <= r && r <= 0x202e, 0x2060 <= r && r <= 0x206f, r == 0x3164,
		0xfe00 <= r && r <= 0xfe0f, r == 0xfeff, r == 0xffa0, 0xfff0 <= r && r <= 0xfff8, 0x1bca0 <= r && r <= 0x1bca3,
		0x1d173 <= r && r <= 0x1d17a, 0xe0000 <= r && r <= 0xe0fff:
		return -1 // default-ignorable: the kernel's folding drops them
	}
	least := r
	for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
		least = min(least, f)
	}
	return unicode.ToLower(least)
}
