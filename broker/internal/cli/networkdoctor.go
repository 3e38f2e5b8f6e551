//go:build linux

package cli

import (
	"errors"
	"net"
	"os"
	"strings"

	"sbx.example/sbx/broker/internal/egress"
	"sbx.example/sbx/broker/internal/launch"
	"sbx.example/sbx/broker/internal/network"
	"sbx.example/sbx/broker/internal/program"
)

// networkFindings are doctor's lines about networks: what carries packets, which is tried, and what --net veth would
// take.
func (t *term) networkFindings(from program.Source) []finding {
	out := finding{What: "network", OK: true}
	var names []string
	list := network.Carriers()
	for _, name := range list {
		if p, err := from.Find(name); err == nil {
			names = append(names, p.String())
		}
	}
	n, err := network.Start(network.Options{All: true, Programs: from})
	if err == nil {
		defer n.Close()
		err = n.Carried()
	}
	switch {
	case err != nil:
		out.OK = false
		out.Says, out.Fix = "--allow-network and --allow-host are not to be had (--net none, the default, is): "+err.Error(),
			"install pasta (package passt) or slirp4netns"
		if _, no := os.Stat("/dev/net/tun"); len(names) > 0 {
			if out.Fix = "let users open /dev/net/tun: as root chmod 0666 /dev/net/tun"; errors.Is(no, os.ErrNotExist) {
				out.Fix = "as root: modprobe tun"
			}
		}
	default:
		out.Says = n.Carrier() + " carries packets and the rules are in force (both were tried); installed: " +
			strings.Join(names, ", ")
		if !network.MayPing() {
			out.Says += "; no echo request of yours leaves this host"
			out.Fix = "for ping inside, " + egress.NoPingFix
		}
	}
	return []finding{out, vethFinding(from)}
}

// vethFinding is the line about --net veth, which nobody needs who has another network.
func vethFinding(from program.Source) finding {
	f := finding{What: "veth"}
	file, err := launch.FindNetHelper()
	if err != nil {
		f.Says = "--net veth is not to be had, and not needed: " + err.Error()
		f.Fix = "for packets that the kernel itself carries: package sbx-helper-suid; or as root: setcap cap_net_admin+ep " +
			"/usr/local/libexec/sbx/sbx-helper"
		return f
	}
	f.OK = true
	f.Says = file + " makes devices for --net veth, which carry IPv4"
	if six, err := network.IPv6BesideVeth(from); err == nil {
		f.Says += " (" + six.String() + " carries IPv6 beside them)"
	} else if !errors.Is(err, network.ErrNoIPv6) {
		f.Says += " (no IPv6: " + err.Error() + ")"
	}
	if b, err := os.ReadFile("/proc/sys/net/ipv4/ip_forward"); err != nil || strings.TrimSpace(string(b)) != "1" {
		f.OK = false
		f.Says += ", once this host forwards packets"
		f.Fix = "as root: sysctl -w net.ipv4.ip_forward=1, or forwarding = true in /etc/sbx/helper.toml"
	}
	if says, fix := dropsForwarded(from); says != "" {
		f.OK = false
		f.Says += "; " + says
		f.Fix = strings.TrimPrefix(f.Fix+"; "+fix, "; ")
	}
	return f
}

// dropsForwarded says what the policy of FORWARD does to the packets of --net veth. Root alone can read it; others
// are told where Docker is, which makes it DROP.
func dropsForwarded(from program.Source) (says, fix string) {
	file, err := launch.FindHost(from)
	if err != nil {
		return "", ""
	}
	if os.Geteuid() == 0 {
		if drops, err := launch.DropsForwarded(file); err != nil || !drops {
			return "", ""
		}
		return "the policy of the chain FORWARD is DROP, so their packets go nowhere", file.String() + " allow-forward"
	}
	if _, err := net.InterfaceByName("docker0"); err != nil {
		return "", ""
	}
	return "Docker is here, which has their packets dropped if it made the policy of the chain FORWARD DROP",
		"as root: " + file.String() + " allow-forward (with --dry-run it says what it would do)"
}
