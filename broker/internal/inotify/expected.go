//go:build linux

package inotify

// Expected are events that a program causes itself. Not all of them come: equal ones are reported once, and not every
// call causes all that it may. D stands for a watched directory. The caller sees to its locks.
type Expected[D comparable] struct {
	of map[kind[D]]*count
}

// kind is one kind of event of one name.
type kind[D comparable] struct {
	dir  D
	name string
	mask uint32
}

type count struct {
	left, doing int
	last        uint64 // where in all that is reported the last of them may be, once nothing is being done
}

// Begin is for what may cause one event of each mask.
func (x *Expected[D]) Begin(dir D, name string, masks []uint32) {
	if x.of == nil {
		x.of = map[kind[D]]*count{}
	}
	for _, m := range masks {
		k := kind[D]{dir, name, m}
		if x.of[k] == nil {
			x.of[k] = &count{}
		}
		x.of[k].left++
		x.of[k].doing++
	}
}

// End is for when that is done. None of its events stands behind last, in bytes of all that is reported.
func (x *Expected[D]) End(dir D, name string, masks []uint32, last uint64) {
	for _, m := range masks {
		if o := x.of[kind[D]{dir, name, m}]; o != nil {
			o.doing, o.last = o.doing-1, last
		}
	}
}

// Take says whether an event that ends at a place of all that is reported was expected, and counts it.
func (x *Expected[D]) Take(dir D, name string, mask uint32, end uint64) bool {
	o := x.of[kind[D]{dir, name, mask}]
	if o == nil || o.left == 0 || o.doing == 0 && o.last < end {
		return false
	}
	o.left--
	return true
}

// Forget forgets what is done, for when all that was reported has been read.
func (x *Expected[D]) Forget() {
	for k, o := range x.of {
		if o.doing == 0 {
			delete(x.of, k)
		}
	}
}

// Has says whether an event of one of the masks may be expected of a name.
func (x *Expected[D]) Has(dir D, name string, masks []uint32) bool {
	for _, m := range masks {
		if x.of[kind[D]{dir, name, m}] != nil {
			return true
		}
	}
	return false
}

// Same is for what is renamed: an event that is expected of one name may come with the other. It lasts until the End of
// the first with the same masks, and until all is forgotten.
func (x *Expected[D]) Same(dir D, name string, toDir D, toName string, masks []uint32) {
	x.Begin(dir, name, masks)
	for _, m := range masks {
		from, to := kind[D]{dir, name, m}, kind[D]{toDir, toName, m}
		one, other := x.of[from], x.of[to]
		one.left-- // a rename causes none itself
		x.of[to] = one
		if other == nil || other == one {
			continue
		}
		one.left, one.doing, one.last = one.left+other.left, one.doing+other.doing, max(one.last, other.last)
		for k, o := range x.of {
			if o == other {
				x.of[k] = one
			}
		}
	}
}
