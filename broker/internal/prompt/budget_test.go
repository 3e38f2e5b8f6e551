package prompt

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
)

// Who answers at once is asked as often as a program wants; who does not is not asked more than the budget has.
func TestAnswersRepayTheBudget(t *testing.T) {
	for name, c := range map[string]struct {
		allow bool
		leave bool // the program goes before there is an answer
		want  int  // questions of 200
	}{
		"allowed": {allow: true, want: 200},
		"denied":  {want: 20}, // the denials in a row
		"left":    {leave: true, want: 40},
	} {
		synctest.Test(t, func(t *testing.T) {
			q := NewQueue(Options{})
			defer q.Close()
			asked := 0
			for i := range 200 {
				ctx, cancel := context.WithCancel(context.Background())
				done := make(chan Answer, 1)
				go func() { done <- q.Ask(ctx, read(fmt.Sprintf("/p/d%d/f", i))) }()
				synctest.Wait()
				if p := q.Pending(); len(p) == 1 {
					asked++
					if !c.leave {
						if err := q.Answer(p[0].ID, Answer{Allow: c.allow, By: BySocket}); err != nil {
							t.Fatal(err)
						}
					}
				}
				cancel()
				<-done
			}
			if asked != c.want {
				t.Errorf("%s: %d questions were put, want %d", name, asked, c.want)
			}
		})
	}
}
