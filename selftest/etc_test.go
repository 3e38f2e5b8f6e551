//go:build linux

package selftest

import (
	"context"
	"os"
	"strconv"
	"syscall"

	"github.com/rogpeppe/go-internal/testscript"
)

// etcScript puts files over those of /etc, and nothing over what the file "without" lists, where nobody else sees it,
// and becomes the ordinary user. The machine's own files stay as they are: the ordinary user has no line in them, and
// no subordinate ids.
const etcScript = `set -e
files=$1 uid=$2; shift 2
for f in "$files"/*; do
	case $f in
	*/without) while read -r p; do mount --bind /dev/null "$p"; done <"$f" ;;
	*) chown 0:0 "$f"; chmod 644 "$f"; [ -e "/etc/${f##*/}" ] || : >"/etc/${f##*/}"; mount --bind "$f" "/etc/${f##*/}" ;;
	esac
done
exec setpriv --reuid="$uid" --regid="$uid" --clear-groups -- "$@"`

// cmdEtc runs sbx as the ordinary user with other files in /etc.
func cmdEtc(ts *testscript.TestScript, args []string) {
	if os.Getuid() != 0 {
		ts.Fatalf("etc: root that may mount is missing; ask for [root] first")
	}
	files := ts.MkAbs(args[0])
	want, args := wantStatus(ts, args[1:])
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := userCommand(ctx, ts, append([]string{"/usr/bin/env", "unshare", "--mount", "sh", "-c", etcScript, "etc", files,
		strconv.Itoa(shop.uid), shop.sbx}, args...))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // as root: the script becomes the user
	finish(ts, ctx, cmd, want, args)
}
