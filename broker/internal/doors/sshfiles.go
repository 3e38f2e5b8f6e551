//go:build linux

package doors

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"sbx.example/sbx/broker/internal/guard"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/quoting"
	"sbx.example/sbx/broker/plan"
)

// Bounds of what is shown of ~/.ssh.
const (
	maxSSHFile = 1 << 20
	maxSSHKeys = 64
)

// sshFiles shows what ssh reads beside the agent: the hosts that it knows, public keys, and its configuration without
// what runs programs or names sockets of the host. They are copies, so nothing else of ~/.ssh is shown for them.
func (d *Doors) sshFiles() {
	homes := []string{d.In.Facts.Home, d.In.Facts.Account}
	for _, home := range slices.Compact(homes) {
		dir := home + "/.ssh"
		if home == "" || !d.hiddenAsSecret(dir) {
			continue
		}
		d.copySSH(dir+"/known_hosts", func(text string) string { return text })
		d.copySSH(dir+"/config", func(text string) string {
			shown, left := sshConfig(text)
			if len(left) > 0 {
				d.In.Losses = append(d.In.Losses, planner.Loss{What: "configuration of ssh", Price: true,
					Why: "left out of " + quoting.Quote(dir+"/config") + ": " + strings.Join(left, ", ")})
			}
			return shown
		})
		list, _ := d.In.FS.ReadDir(dir)
		keys := 0
		for _, e := range list {
			if strings.HasSuffix(e.Name, ".pub") && e.Type == host.File && keys < maxSSHKeys {
				keys++
				d.copySSH(path.Join(dir, e.Name), publicOnly)
			}
		}
	}
}

// hiddenAsSecret says whether nobody but the built-in list hides a directory: what a person or an administrator hides
// stays so.
func (d *Doors) hiddenAsSecret(dir string) bool {
	builtin := ""
	for _, s := range policy.Secrets() {
		if s.Pattern == "~/.ssh" {
			builtin = s.Reason
		}
	}
	return !slices.ContainsFunc(d.In.Hides, func(h planner.Hide) bool {
		return !h.Ask && h.Why != builtin && (host.Within(dir, h.Path) || host.Within(h.Path, dir))
	})
}

// copySSH shows a file as edit leaves it; an empty one is not shown.
func (d *Doors) copySSH(name string, edit func(string) string) {
	text, err := d.In.FS.Peek(name, 0, maxSSHFile)
	if err != nil || len(text) == maxSSHFile {
		return
	}
	if shown := edit(string(text)); shown != "" {
		d.In.Copies = append(d.In.Copies, planner.Copy{Path: name,
			Text: plan.Text{Name: fmt.Sprintf("ssh-%d", len(d.In.Copies)), Text: shown}})
	}
}

// publicOnly is the text of a public key; a private one under such a name stays hidden.
func publicOnly(text string) string {
	if guard.HoldsPrivateKey([]byte(text)) {
		return ""
	}
	return text
}

// sshKeywords are those of ssh_config(5) that neither run nor load anything, name no socket and hold no password.
func sshKeywords() []string {
	return []string{"addkeystoagent", "addressfamily", "batchmode", "canonicaldomains", "canonicalizefallbacklocal",
		"canonicalizehostname", "canonicalizemaxdots", "canonicalizepermittedcnames", "casignaturealgorithms",
		"certificatefile", "checkhostip", "ciphers", "compression", "connectionattempts", "connecttimeout",
		"forwardagent", "globalknownhostsfile", "hashknownhosts", "hostbasedauthentication", "hostkeyalgorithms",
		"hostkeyalias", "hostname", "identitiesonly", "identityfile", "ignoreunknown", "ipqos", "kexalgorithms", "loglevel",
		"macs", "passwordauthentication", "port", "preferredauthentications", "proxyjump", "pubkeyacceptedalgorithms",
		"pubkeyacceptedkeytypes", "pubkeyauthentication", "rekeylimit", "requesttty", "requiredrsasize", "sendenv",
		"serveralivecountmax", "serveraliveinterval", "stricthostkeychecking", "tag", "tcpkeepalive", "updatehostkeys",
		"usekeychain", "user", "userknownhostsfile", "verifyhostkeydns", "visualhostkey"}
}

// sshConfig is ssh's configuration with nothing but known keywords, and which others it had. A block that begins with
// the result of a program is left out as a whole.
func sshConfig(text string) (shown string, left []string) {
	known := sshKeywords()
	var b strings.Builder
	leave := func(word string) {
		if word = quoting.ASCII(word); !slices.Contains(left, word) {
			left = append(left, word)
		}
	}
	skip := false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		end := strings.IndexAny(line, " \t=")
		if end < 0 {
			end = len(line)
		}
		word := strings.Trim(line[:end], `"`)
		switch low := strings.ToLower(word); {
		case word == "" || word[0] == '#':
			continue
		case low == "host":
			skip = false
		case low == "match":
			if skip = strings.Contains(strings.ToLower(line), "exec"); skip {
				leave("Match exec")
			}
		case !slices.Contains(known, low):
			leave(word)
			continue
		}
		if !skip {
			b.WriteString(line + "\n")
		}
	}
	return b.String(), left
}
