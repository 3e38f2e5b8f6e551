package changes

// edit is one line of a comparison: ' ' in both, '-' only in the old, '+' only in the new.
type edit struct {
	op   byte
	line string
}

// maxSteps bounds the search for the shortest script; texts that differ by more are shown as replaced.
const maxSteps = 1500

// compare finds a short script from a to b (Myers 1986, "An O(ND) difference algorithm").
func compare(a, b []string) []edit {
	var head, tail []edit
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		head = append(head, edit{' ', a[0]})
		a, b = a[1:], b[1:]
	}
	n := 0
	for n < len(a) && n < len(b) && a[len(a)-1-n] == b[len(b)-1-n] {
		n++
	}
	for _, l := range a[len(a)-n:] {
		tail = append(tail, edit{' ', l})
	}
	return append(append(head, shortest(a[:len(a)-n], b[:len(b)-n])...), tail...)
}

func shortest(a, b []string) []edit {
	limit := min(len(a)+len(b), maxSteps)
	var trace [][]int
	v := make([]int, 2*limit+3)
	at := func(v []int, k int) int { return v[k+limit+1] }
	for d := 0; d <= limit; d++ {
		trace = append(trace, append([]int(nil), v[limit+1-d:limit+2+d]...))
		for k := -d; k <= d; k += 2 {
			x := 0
			if k == -d || k != d && at(v, k-1) < at(v, k+1) {
				x = at(v, k+1)
			} else {
				x = at(v, k-1) + 1
			}
			y := x - k
			for x < len(a) && y < len(b) && a[x] == b[y] {
				x, y = x+1, y+1
			}
			v[k+limit+1] = x
			if x >= len(a) && y >= len(b) {
				return backtrack(a, b, trace)
			}
		}
	}
	var out []edit
	for _, l := range a {
		out = append(out, edit{'-', l})
	}
	for _, l := range b {
		out = append(out, edit{'+', l})
	}
	return out
}

// backtrack walks the trace from the end; trace[d] holds the diagonals -d to d as they were before step d.
func backtrack(a, b []string, trace [][]int) []edit {
	var rev []edit
	x, y := len(a), len(b)
	for d := len(trace) - 1; d > 0; d-- {
		at := func(k int) int { return trace[d][k+d] }
		k := x - y
		prev := k - 1
		if k == -d || k != d && at(k-1) < at(k+1) {
			prev = k + 1
		}
		px := at(prev)
		py := px - prev
		mx, my, op := px+1, py, byte('-')
		if prev == k+1 {
			mx, my, op = px, py+1, '+'
		}
		for x > mx && y > my {
			rev = append(rev, edit{' ', a[x-1]})
			x, y = x-1, y-1
		}
		if op == '+' {
			rev = append(rev, edit{op, b[y-1]})
		} else {
			rev = append(rev, edit{op, a[x-1]})
		}
		x, y = px, py
	}
	for x > 0 && y > 0 {
		rev = append(rev, edit{' ', a[x-1]})
		x, y = x-1, y-1
	}
	out := make([]edit, len(rev))
	for i := range rev {
		out[len(rev)-1-i] = rev[i]
	}
	return out
}
