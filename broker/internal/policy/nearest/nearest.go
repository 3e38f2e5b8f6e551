// Package nearest finds the name that was probably meant where somebody has typed one that does not exist. It must know
// nothing of what the names are of. Whoever reads names that people write calls it.
package nearest

import "strings"

// Name finds the known name that was probably meant; empty if none is close.
func Name(name string, known []string) string {
	best, bestD := "", len(name)/2+1
	name = strings.ToLower(name) // case alone is never what was meant to differ
	for _, k := range known {
		if d := distance(name, k); d < bestD {
			best, bestD = k, d
		}
	}
	return best
}

// distance is Levenshtein's, on bytes; both sides are short.
func distance(a, b string) int {
	if len(a) > 64 {
		return len(a)
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diag := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := diag
			if a[i-1] != b[j-1] {
				cost++
			}
			diag = row[j]
			row[j] = min(cost, row[j]+1, row[j-1]+1)
		}
	}
	return row[len(b)]
}
