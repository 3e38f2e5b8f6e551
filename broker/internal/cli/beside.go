//go:build linux

package cli

import (
	"os"
	"path"

	"sbx.example/sbx/broker/internal/bwrap"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/live"
	"sbx.example/sbx/broker/internal/placeholders"
	"sbx.example/sbx/broker/internal/request"
	"sbx.example/sbx/broker/internal/session"
)

// beside is what sbx does in bubblewrap's place beside what the words say. Settled says that env is that of sbx env,
// files is Before's.
func beside(env []string, std [3]*os.File, settled bool, files uint64) bwrap.Beside {
	b := bwrap.Beside{Files: files, Under: func() (under bwrap.Under, asks bwrap.Asks, err error) {
		if who := host.Who(env); !settled {
			if err := request.Moved(env, who, (&request.Request{}).ProjectRoot(who)); err != nil {
				return nil, nil, err
			}
		}
		w, err := live.NewWords(env, std)
		if w == nil || err != nil {
			return nil, nil, err
		}
		if w.Enforces() {
			under = w
		}
		if w.Asks() {
			asks = w
		}
		return under, asks, nil
	}}
	if logs, _, err := session.Logs(host.Lookup(env, "XDG_STATE_HOME"), host.Lookup(env, "HOME")); err == nil {
		b.Logs = logs
		b.Left = func(dirs []string) {
			placeholders.Watch(path.Dir(logs), request.Sources(env, host.Who(env), ""), dirs)
		}
	}
	return b
}
