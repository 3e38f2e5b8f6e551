//go:build linux

package changes

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// returnedFile is the file, beside a session's layers, that names the directories which Recover has put back in their
// places.
const returnedFile = "overlay/returned.jsonl"

// returned is a directory of the host's with the change time that it has from being put back: that is no change of the
// host's.
type returned struct {
	Dev  uint64 `json:"dev"`
	Ino  uint64 `json:"ino"`
	Sec  int64  `json:"sec"`
	Nsec int64  `json:"nsec"`
}

func returnedOf(st *unix.Stat_t) returned {
	return returned{uint64(st.Dev), st.Ino, int64(st.Ctim.Sec), int64(st.Ctim.Nsec)}
}

// noteReturned remembers a directory that was just put back. Where that fails the next apply takes it for changed.
func noteReturned(session string, dir int, name string) {
	var st unix.Stat_t
	if lstatAt(dir, name, &st) != nil || kindOf(&st) != Dir {
		return
	}
	b, err := json.Marshal(returnedOf(&st))
	if err != nil {
		return
	}
	f, err := os.OpenFile(filepath.Join(session, returnedFile), os.O_WRONLY|os.O_CREATE|os.O_APPEND|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return
	}
	defer f.Close()
	_, _ = f.Write(append(b, '\n'))
}

// notedReturned reads what noteReturned left in a session's folder.
func notedReturned(session string) map[returned]bool {
	b, err := os.ReadFile(filepath.Join(session, returnedFile))
	if err != nil {
		return nil
	}
	out := map[returned]bool{}
	for line := range strings.Lines(string(b)) {
		var r returned
		if json.Unmarshal([]byte(line), &r) == nil {
			out[r] = true
		}
	}
	return out
}
