//go:build linux

package checks

// elsewhere lists the attacks of the corpus that need a person, a prompt, a policy file, a helper, root or the network
// lab. Test is what covers each of them: a script in testdata, or a function.
func elsewhere() []Ref {
	var all []Ref
	add := func(test, reason string, ids ...string) {
		for _, id := range ids {
			all = append(all, Ref{ID: id, Test: test, Reason: reason})
		}
	}
	add("second_names.txtar", "the gate judges each further name and asks", "FR-24")
	add("host_mounts.txtar", "needs mounts that the host makes", "FR-25", "FR-26")
	add("approve_once.txtar", "needs a person's answer", "FR-39")
	add("guarded_trees.txtar", "what is said at the end is judged; programs of the project's are its own",
		"FW-14", "FW-15")
	add("TestHostileBytesAreShownEscaped", "the bytes of the question are judged", "TT-05", "TT-06", "TT-07",
		"TT-08")
	add("TestAskerIsNamedByItsWholePath", "what the question says about the program is judged", "TT-09")
	add("TestGuestCannotDrawOverTheQuestion", "what is drawn on the terminal is judged", "TT-10")
	add("TestTypeAheadAndHeldKeysDoNotAnswer", "needs a person's keys", "TT-11")
	add("TestRoundTrip", "the log is judged", "TT-12", "TT-13")
	add("TestHookGetsGuestTextAsData", "the notification is judged", "TT-14")
	add("ps.txtar", "what ps, ls and audit print is judged", "TT-15")
	add("network_open.txtar", "needs the network lab's own servers", "NT-11", "NT-22")
	add("network_veth.txtar", "needs a veth in the network lab", "NT-12", "NT-13")
	add("network_exfil.txtar", "needs the egress filter in the network lab", "NT-14", "NT-16", "NT-17")
	add("TestHostTable", "a pure function of rule and name", "NT-15")
	add("TestManyNewNamesBelowAWildcard", "what reaches the resolver is judged", "NT-18")
	add("network_list.txtar", "needs the resolver in the network lab", "NT-19")
	add("limits.txtar", "what the host's user may still have is judged", "RS-03")
	add("TestFullDisk", "a full disk: the log is judged", "RS-05")
	add("approve_hostile.txtar", "memory and latency of the broker are judged", "RS-06")
	add("TestFlood", "the number of questions is judged", "RS-07")
	add("question_restarted.txtar", "the number of questions is judged", "RS-08")
	add("TestSlowReader", "memory of the broker is judged", "RS-14")
	add("TestStrangersAreRefused", "needs another user", "BP-02")
	add("TestMisuse", "speaks to the socket from the host", "BP-03")
	add("TestManyConnections", "speaks to the socket from the host", "BP-04")
	add("TestApproveAndDeny", "needs open questions", "BP-05")
	add("TestReplayAndTwoClients", "needs open questions", "BP-06", "BP-08")
	add("FuzzParseCommand", "what a client can say is judged", "BP-07")
	add("TestDescriptorsAreNotTaken", "counts the broker's descriptors", "BP-09")
	add("bad_places.txtar", "runs sbx with prepared directories", "BP-10")
	add("exec_terminal.txtar", "needs a terminal", "BP-11")
	add("TestHostileHelper", "needs the installed helper", "HP-01", "HP-02", "HP-03", "HP-04", "HP-05", "HP-06",
		"HP-07", "HP-08", "HP-10", "HP-12", "HP-13", "HP-14", "HP-15", "HP-18", "HP-20")
	add("TestHelperKilledAtEveryStep", "needs the installed helper", "HP-09")
	add("TestHelperOrgFile", "needs root's own settings", "HP-11")
	add("TestHelperRules", "needs helpers installed in other ways", "HP-17")
	add("helper_namespaces.txtar", "needs the installed helper", "HP-16")
	add("TestHelperThroughSudo", "needs root to start it", "HP-19")
	add("TestHostileProject", "a project's file is judged", "PL-01")
	add("TestHygiene", "files that are no plain files are judged", "PL-02", "PL-03")
	add("TestOwners", "needs another user's files", "PL-04", "PL-10")
	add("TestPatternRefused", "a pure function of a pattern", "PL-05", "PL-06")
	add("TestBombs", "a parser under hostile input", "PL-07")
	add("TestKeyErrors", "a parser under hostile input", "PL-08")
	add("TestTrust", "the pinned bytes are judged", "PL-09")
	add("policy_trust.txtar", "needs a person who trusts a file", "PL-11")
	add("environment.txtar", "runs sbx with hostile variables", "PL-12")
	add("TestThreeStates", "empty lists and absent files are judged", "PL-13")
	add("TestBeginChecksTheName", "arguments of the command line", "LC-01")
	add("gate_faults.txtar", "stops and kills the broker while it is asked", "LC-03", "LC-04")
	add("network_doors.txtar", "kills and stops the network's carriers", "LC-05")
	add("containers_hostile.txtar", "needs nested containers", "LC-06")
	add("TestKilledBrokerLeavesNothing", "kills the broker", "LC-07", "LC-11")
	add("TestDamage", "a property of the log's format", "LC-08")
	add("TestVanished", "changes the log while a session runs", "LC-09")
	add("ps.txtar", "ends a session from outside", "LC-10")
	add("vm.txtar", "needs QEMU", "NX-03")
	return all
}
