// Package excerpt quotes what a file of settings says, as far as an error about it needs that. It must never show more,
// or a byte that a terminal would act upon. Whoever reads such a file calls it.
package excerpt

import "strconv"

// Quote shows the beginning of s in double quotes.
func Quote(s string) string {
	if len(s) > 120 {
		return strconv.QuoteToASCII(s[:120]) + "..."
	}
	return strconv.QuoteToASCII(s)
}
