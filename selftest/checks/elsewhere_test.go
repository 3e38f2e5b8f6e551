//go:build linux

package checks

// elsewhere lists the attacks of the corpus that need a person, a prompt, a policy file, a helper, root or the network
// lab. Test is the name of the test that covers each of them.
func elsewhere() []Ref {
	var all []Ref
	add := func(test, reason string, ids ...string) {
		for _, id := range ids {
			all = append(all, Ref{ID: id, Test: test, Reason: reason})
		}
	}
	add("gate/hardlink.txtar", "the gate judges link counts and asks", "FR-24")
	add("mounts/alias.txtar [root]", "needs a bind mount made on the host", "FR-25")
	add("mounts/propagation.txtar [root]", "needs a mount made on the host after the launch", "FR-26")
	add("gate/scope.txtar", "needs a scripted approval", "FR-39")
	add("report/tainted.txtar", "the report at exit is what is judged", "FW-14", "FW-15")
	add("prompt/escape.txtar", "the bytes of the prompt are judged", "TT-05", "TT-06", "TT-07", "TT-08")
	add("prompt/identity.txtar", "what the prompt says about the program is judged", "TT-09")
	add("prompt/spoof.txtar", "what is drawn on the terminal is judged", "TT-10")
	add("prompt/typeahead.txtar", "needs scripted input", "TT-11")
	add("audit/inject.txtar", "the log is judged", "TT-12", "TT-13")
	add("prompt/notify.txtar", "the notification is judged", "TT-14")
	add("sessions/quoting.txtar", "the output of ls and attach is judged", "TT-15")
	add("network/hostloopback.txtar", "needs --net slirp4netns or pasta and the lab's own servers", "NT-11")
	add("network/veth.txtar [root]", "needs --net veth in the network lab", "NT-12", "NT-13")
	add("network/literal.txtar", "needs the egress filter in the network lab", "NT-14", "NT-16")
	add("network/TestHostRule", "a pure function of rule and name", "NT-15")
	add("network/dns.txtar", "needs the resolver in the network lab", "NT-17", "NT-18", "NT-19")
	add("network/leftovers.txtar", "needs a network helper running", "NT-22")
	add("resources/quotas.txtar [vm]", "floods the user's own kernel quotas: only on a scratch machine", "RS-03")
	add("resources/disk.txtar [vm]", "fills a disk: only on a scratch machine", "RS-05")
	add("gate/flood.txtar", "memory and latency of the broker are judged", "RS-06")
	add("prompt/flood.txtar", "the number of questions is judged", "RS-07")
	add("gate/restart.txtar", "the number of requests at the broker is judged", "RS-08")
	add("sessions/output.txtar", "memory of the broker and size of the log are judged", "RS-14")
	add("control/peer.txtar [root]", "needs another user", "BP-02")
	add("control/malformed.txtar", "speaks to the socket from the host", "BP-03", "BP-04")
	add("control/ids.txtar", "needs open questions", "BP-05", "BP-06", "BP-07", "BP-08")
	add("control/fds.txtar", "counts the broker's descriptors", "BP-09")
	add("control/runtimedir.txtar", "runs sbx with prepared directories", "BP-10")
	add("control/attach.txtar", "speaks to the socket from the host", "BP-11")
	add("helper/environment.txtar [suid]", "needs the installed helper", "HP-01", "HP-02", "HP-03", "HP-08")
	add("helper/inherited.txtar [suid]", "needs the installed helper", "HP-04", "HP-05", "HP-06", "HP-07")
	add("helper/interrupt.txtar [suid]", "needs the installed helper", "HP-09", "HP-10")
	add("helper/state.txtar [suid]", "needs the installed helper and root", "HP-11", "HP-17")
	add("hostile/requests.txtar [suid]", "feeds hand-made plans to the helper", "HP-12", "HP-13", "HP-14", "HP-15",
		"HP-18")
	add("helper/namespace.txtar [suid]", "needs the installed helper", "HP-16")
	add("helper/sudo.txtar [vm]", "needs a sudoers file", "HP-19")
	add("helper/output.txtar [suid]", "needs the installed helper", "HP-20")
	add("policy/project.txtar", "runs sbx with hostile project files", "PL-01", "PL-02", "PL-03", "PL-06", "PL-08",
		"PL-13")
	add("policy/org.txtar [root]", "changes files below /etc", "PL-04")
	add("policy/paths.txtar", "runs sbx with many path forms", "PL-05")
	add("policy/FuzzDecode", "a parser under hostile input", "PL-07")
	add("policy/trust.txtar", "the pinned hash is judged", "PL-09", "PL-11")
	add("policy/discovery.txtar", "needs another user's files", "PL-10")
	add("policy/environment.txtar", "runs sbx with hostile variables", "PL-12")
	add("sessions/ids.txtar", "arguments of the command line", "LC-01")
	add("lifecycle/stopped.txtar", "stops the broker and needs open questions", "LC-03", "LC-04")
	add("lifecycle/helpers.txtar", "needs gate and network helpers running", "LC-05")
	add("lifecycle/subuid.txtar", "needs nested containers", "LC-06")
	add("lifecycle/threads.txtar", "uses the broker from many threads", "LC-07")
	add("audit/TestTornLine", "a property of the log's format", "LC-08")
	add("audit/tamper.txtar", "changes the log while a session runs", "LC-09")
	add("lifecycle/kill.txtar", "measures sbx kill", "LC-10")
	add("lifecycle/panic.txtar", "kills and stops the broker", "LC-11")
	add("containers/qemu.txtar", "needs QEMU", "NX-03")
	return all
}
