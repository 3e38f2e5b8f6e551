package amount

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"sbx.example/sbx/broker/internal/policy/excerpt"
)

// Size is an amount of memory: bytes, or a share of what the machine has.
type Size struct {
	Bytes   uint64
	Percent int
}

// Within says whether a limit is no more than another; a share and bytes cannot be compared.
func (s Size) Within(limit Size) bool {
	switch {
	case s == (Size{}):
		return false
	case limit == (Size{}):
		return true
	}
	return (limit.Percent == 0) == (s.Percent == 0) && s.Percent <= limit.Percent && s.Bytes <= limit.Bytes
}

// Parse reads "75%", "512M", "2GiB", "1048576". K, M, G and T are powers of 1024, with or without iB.
// Empty or "none" is the zero Size: no limit.
func Parse(s string) (Size, error) {
	bad := fmt.Errorf("reading size %s: want a number with K, M, G or T, or a percentage", excerpt.Quote(s))
	if s == "" || s == "none" {
		return Size{}, nil
	}
	if p, ok := strings.CutSuffix(s, "%"); ok {
		n, err := strconv.ParseUint(p, 10, 16)
		if err != nil || n == 0 || n > 100 {
			return Size{}, fmt.Errorf("reading size %s: a share of memory is 1%% to 100%%", excerpt.Quote(s))
		}
		return Size{Percent: int(n)}, nil
	}
	i := strings.IndexFunc(s, func(r rune) bool { return r < '0' || r > '9' })
	unit := ""
	if i >= 0 {
		s, unit = s[:i], s[i:]
	}
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil || n == 0 {
		return Size{}, bad
	}
	shift := 0
	switch unit {
	case "", "B":
	case "K", "KB", "KiB":
		shift = 10
	case "M", "MB", "MiB":
		shift = 20
	case "G", "GB", "GiB":
		shift = 30
	case "T", "TB", "TiB":
		shift = 40
	default:
		return Size{}, bad
	}
	if n > 1<<62>>shift {
		return Size{}, bad
	}
	return Size{Bytes: n << shift}, nil
}

// ParseCPU reads "150%" or "1.5" as percent of one processor; empty or "none" is 0, no limit.
func ParseCPU(s string) (int, error) {
	if s == "" || s == "none" {
		return 0, nil
	}
	body, percent := strings.CutSuffix(s, "%")
	f, err := strconv.ParseFloat(body, 64)
	if !percent {
		f *= 100
	}
	if err != nil || !(f >= 1 && f <= 1e6) || strings.Trim(body, "0123456789.") != "" {
		return 0, fmt.Errorf("reading cpu limit %s: want a percentage of one processor, or a number of them",
			excerpt.Quote(s))
	}
	return int(f), nil
}

// ParseDuration refuses what has no sensible meaning for a limit.
func ParseDuration(s string) (time.Duration, error) {
	if s == "0" {
		return 0, nil
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return 0, errors.New(`want a duration such as "90s", "5m" or "1h30m"; "0s" is none`)
	}
	return d, nil
}
