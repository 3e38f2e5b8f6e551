// Package nearest finds the name that was probably meant where somebody has typed one that does not exist. It must know
// nothing of what the names are of. Whoever reads names that people write calls it.
package nearest

import "strings"

// Name finds the known name that was probably meant; empty if none is close. A wrong suggestion is worse than none:
// somebody may follow it. So each word of a name must be a slip away by itself, and no name comes for its opposite.
func Name(name string, known []string) string {
	name = strings.ToLower(name) // case alone is never what was meant to differ
	if len(name) < 2 || len(name) > 64 {
		return ""
	}
	if begins := beginning(name, known); len(begins) > 0 {
		return theShortest(begins)
	}
	best, least := "", 0
	for _, k := range known {
		if d, ok := slips(name, strings.ToLower(k)); ok && (best == "" || d < least) {
			best, least = k, d
		}
	}
	return best
}

// beginning are the names that somebody may have begun to type.
func beginning(name string, known []string) (out []string) {
	for _, k := range known {
		if len(name) > 2 && strings.HasPrefix(strings.ToLower(k), name) {
			out = append(out, k)
		}
	}
	return out
}

// theShortest is the name that all others begin with: memory of memory and memory-high; empty if they are of several
// kinds.
func theShortest(names []string) string {
	least := names[0]
	for _, n := range names {
		if len(n) < len(least) {
			least = n
		}
	}
	for _, n := range names {
		if !strings.HasPrefix(n, least) {
			return ""
		}
	}
	return least
}

// slips counts them, and says whether they are so few that one name was meant by the other.
func slips(a, b string) (int, bool) {
	if strings.HasPrefix(a, "no-") != strings.HasPrefix(b, "no-") && !strings.HasPrefix(a, "no") {
		return 0, false
	}
	words, others := wordsOf(a), wordsOf(b)
	if len(words) != len(others) { // allowhost
		d := distance(strings.Join(words, ""), strings.Join(others, ""))
		return d + 1, d <= 1
	}
	sum := 0
	for i, w := range words {
		d := distance(w, others[i])
		if d > allowed(len(w)) {
			return 0, false
		}
		sum += d
	}
	return sum, true
}

func wordsOf(name string) []string {
	return strings.FieldsFunc(name, func(c rune) bool { return strings.ContainsRune("-_. ", c) })
}

// allowed is how many slips somebody makes in a word of n letters.
func allowed(n int) int {
	switch {
	case n < 2:
		return 0
	case n < 6:
		return 1
	}
	return 2
}

// distance is Levenshtein's, on bytes, with two letters in the wrong order for one slip. The first letter may be
// missing; that it is wrong is seldom, and counts for two.
func distance(a, b string) int {
	d := make([][]int, len(a)+1)
	for i := range d {
		d[i] = make([]int, len(b)+1)
		for j := range d[i] {
			switch {
			case i == 0:
				d[i][j] = j
			case j == 0:
				d[i][j] = i + 1
			default:
				d[i][j] = min(d[i-1][j], d[i][j-1]) + 1
				step := 0
				if a[i-1] != b[j-1] {
					step = 1
					if i == 1 && j == 1 {
						step = 2
					}
				}
				d[i][j] = min(d[i][j], d[i-1][j-1]+step)
				if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
					d[i][j] = min(d[i][j], d[i-2][j-2]+1)
				}
			}
		}
	}
	return d[len(a)][len(b)]
}
