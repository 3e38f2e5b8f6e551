package command

import (
	"fmt"

	"sbx.example/sbx/broker/internal/policy"
)

// maxNotices is how many lines a project's files can make a run begin with.
const maxNotices = 12

// Notices says what of the files does not count. A project can fill its files with such things.
func (t *Term) Notices(list []policy.Notice) {
	for i, n := range list {
		if i == maxNotices && len(list) > maxNotices+1 {
			t.Warn(fmt.Sprintf("%d more settings and rules are ignored or worth a look; sbx policy check lists them",
				len(list)-i))
			return
		}
		t.Warn(n.String())
	}
}
