package policy

import (
	"reflect"
	"slices"
	"time"

	"sbx.example/sbx/broker/internal/policy/amount"
	"sbx.example/sbx/broker/internal/policy/pathname"
	"sbx.example/sbx/broker/internal/policy/peer"
)

// narrower reports that going from cur to val grants nothing new.
func (k *key) narrower(cur, val any) bool {
	if reflect.DeepEqual(cur, val) {
		return true
	}
	switch k.limit {
	case toFalse:
		return !val.(bool)
	case toTrue:
		return val.(bool)
	case toFirst:
		c, v := slices.Index(k.words, cur.(string)), slices.Index(k.words, val.(string))
		// A profile of somebody's own is not on the scale.
		return c >= 0 && v >= 0 && v <= c
	case toLess:
		return k.less(cur, val)
	case byAdding:
		if len(cur.([]string)) == 0 {
			return true
		}
		return covered(k.typ, val, cur, func(typ, string, string) bool { return false })
	case bySubset:
		return covered(k.typ, cur, val, covers)
	}
	return false
}

// takesAway reports that val is narrower and a list that grants has nothing but entries of cur. An entry that is
// narrower than one of those can open all the same: a place or host that is named is shown where what holds around it
// is hidden, guarded, asked about or closed.
func (k *key) takesAway(cur, val any) bool {
	return k.narrower(cur, val) && (k.limit != bySubset || reflect.DeepEqual(cur, val) ||
		covered(k.typ, cur, val, func(typ, string, string) bool { return false }))
}

// less compares limits; 0 is none. A share and an amount cannot be compared here, so that counts as wider.
func (k *key) less(cur, val any) bool {
	switch v := val.(type) {
	case int:
		return v != 0 && (cur.(int) == 0 || v <= cur.(int))
	case time.Duration:
		return v != 0 && (cur.(time.Duration) == 0 || v <= cur.(time.Duration))
	case string:
		if k.typ == tCPU {
			a, _ := amount.ParseCPU(cur.(string))
			b, _ := amount.ParseCPU(v)
			return b != 0 && (a == 0 || b <= a)
		}
		a, _ := amount.Parse(cur.(string))
		b, _ := amount.Parse(v)
		return b.Within(a)
	}
	return false
}

// covered reports that every element of small is in big, or covered by one of its elements.
func covered(t typ, big, small any, covers func(t typ, a, b string) bool) bool {
	if ports, ok := small.([]int); ok {
		for _, p := range ports {
			if !slices.Contains(big.([]int), p) {
				return false
			}
		}
		return ports != nil
	}
	bigs, smalls := big.([]string), small.([]string)
	for _, s := range smalls {
		found := false
		for _, b := range bigs {
			if b == s || covers(t, b, s) {
				found = true
				break
			}
		}
		if !found {
			return false
		}
	}
	return smalls != nil
}

// covers reports that element a grants all that b does.
func covers(t typ, a, b string) bool {
	switch t {
	case tPaths:
		pa, _ := pathname.SplitOptional(a)
		pb, _ := pathname.SplitOptional(b)
		return pathname.Within(pb, pa)
	case tHosts:
		x, err1 := peer.ParsePattern(a)
		y, err2 := peer.ParsePattern(b)
		return err1 == nil && err2 == nil && x.Covers(y)
	}
	return false
}
