package decide

import (
	"context"
	"slices"
	"testing"
)

// What is added is called once, in its order, at the latest when Run is; the zero pointer parks nobody.
func TestAfter(t *testing.T) {
	var a After
	var got []int
	a.Add(func() { got = append(got, 1) })
	a.Add(func() { got = append(got, 2) })
	a.OnPark(func() { got = append(got, 0) })
	AfterOf(context.Background()).Park()
	AfterOf(WithAfter(context.Background(), &a)).Park()
	a.Park()
	a.Run()
	a.Run()
	a.Add(func() { got = append(got, 3) })
	if !slices.Equal(got, []int{0, 1, 2, 3}) {
		t.Errorf("called %v", got)
	}
}
