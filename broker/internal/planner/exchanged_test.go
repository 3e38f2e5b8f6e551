package planner

import (
	"errors"
	"testing"

	"sbx.example/sbx/broker/plan"
)

// TestBubblewrapMountsWhatIsKnown: bubblewrap follows a link that has taken the place of an entry of a directory which
// is shown in parts. So each is mounted only as what it was. Else links are not followed, and it may be another.
func TestBubblewrapMountsWhatIsKnown(t *testing.T) {
	for _, by := range []*Bubblewrap{nil, {}} {
		in := working("/home/u/project/.env")
		in.Grants[0].Mode = Read
		in.Direct, in.Bubblewrap = true, by
		p, _, err := Build(in)
		if err != nil {
			t.Fatal(err)
		}
		listed := 0
		for i := range p.Mounts {
			if m := &p.Mounts[i]; m.Kind == plan.Bind && m.Optional {
				listed++
				if (m.Ino != 0) != (by != nil) {
					t.Errorf("bubblewrap %v: %s is compared with number %d", by != nil, m.Target, m.Ino)
				}
			}
		}
		if listed == 0 {
			t.Error("nothing is shown in parts")
		}
	}
}

// exchanging is a file system in which somebody is at work.
type exchanging struct{ valuesFS }

func (exchanging) Exchanged() string { return "/home/u/project/sub" }

// TestPlanOfWhatIsExchanged: there is none where a directory was found to be a link meanwhile: nobody knows what was
// searched for secrets.
func TestPlanOfWhatIsExchanged(t *testing.T) {
	in := working()
	if _, _, err := Build(in); err != nil {
		t.Fatal(err)
	}
	in.FS = exchanging{in.FS.(valuesFS)}
	var refused *Refusal
	if _, _, err := Build(in); !errors.As(err, &refused) {
		t.Errorf("it was planned: %v", err)
	}
}
