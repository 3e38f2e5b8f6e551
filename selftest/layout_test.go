//go:build linux

package selftest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"
)

// The layout of architecture.md as tables. A package that has no row, and an import that its row does
// not have, fail the test: a new edge is a decision, and this is where it is written down.

// mayImport says which packages of ours a package imports. "a/..." stands for all below a.
var mayImport = map[string][]string{
	"shared/plan":       {},
	"shared/wire":       {},
	"shared/rtnl":       {},
	"shared/tape":       {},
	"shared/stage":      {"shared/plan", "shared/wire", "shared/tape"},
	"helper":            {"shared/plan", "shared/wire", "shared/stage", "shared/rtnl"},
	"shared/atomicfile": {},
	// what sbx and sbx-proxy say to each other
	"shared/mark":    {}, // of decoys, in text
	"shared/proxied": {"shared/mark"},
	"shared/turn":    {"shared/atomicfile"}, // of sessions, at a login's token endpoint
	// programs of their own: what programs inside send is parsed in the one, the other has what sbx is not linked with
	"proxy": {"proxy/sigv4", // signatures for AWS, and nothing of credentials
		"shared/atomicfile", "shared/mark", "shared/proxied", "shared/turn", "seccompbpf"},
	"proxy/sigv4": {},
	"host":        {},

	"seccompbpf":     {},
	"seccompbpf/gen": {},
	"audit":          {},

	"broker/plan":                  {"shared/plan"}, // the Plan; also for programs of others
	"broker/internal/helperclient": {"shared/wire"},

	"broker/internal/policy/excerpt":   {},
	"broker/internal/policy/tomlscan":  {"broker/internal/policy/excerpt"},
	"broker/internal/policy/peer":      {"broker/internal/policy/excerpt"},
	"broker/internal/policy/amount":    {"broker/internal/policy/excerpt"},
	"broker/internal/policy/ownfile":   {"broker/internal/host", "broker/internal/policy/excerpt"},
	"broker/internal/policy/manual":    {},
	"broker/internal/policy/arguments": {"broker/internal/policy/excerpt"},
	"broker/internal/policy/pathname":  {"broker/internal/policy/excerpt"},
	"broker/internal/policy/mac":       {},
	"broker/internal/policy/nearest":   {},
	"broker/internal/policy/trust":     {"broker/internal/policy/excerpt", "broker/internal/policy/ownfile"},
	"broker/internal/policy": {"broker/internal/policy/mac", "broker/internal/policy/pathname",
		"broker/internal/policy/nearest", "broker/internal/policy/trust",
		"broker/internal/policy/ownfile", "broker/internal/policy/excerpt", "broker/internal/policy/tomlscan",
		"broker/internal/policy/arguments",
		"broker/internal/policy/peer", "broker/internal/policy/amount", "broker/internal/policy/manual"},
	// the text of files, which policy reads back
	"broker/internal/policy/edit": {"broker/internal/policy", "broker/internal/policy/excerpt",
		"broker/internal/policy/nearest", "broker/internal/policy/ownfile", "broker/internal/policy/tomlscan"},
	"broker/internal/policy/foreign": {"broker/internal/policy", "broker/internal/policy/edit",
		"broker/internal/policy/excerpt",
		"broker/internal/policy/ownfile",
		"broker/internal/policy/pathname", "broker/internal/policy/tomlscan"},
	// what agents need, as data
	"broker/internal/agentprofile": {"broker/internal/policy", "broker/internal/policy/excerpt",
		"broker/internal/policy/nearest",
		"broker/internal/policy/ownfile", "broker/internal/policy/pathname", "broker/internal/policy/peer",
		"broker/internal/policy/tomlscan"},
	// what agents leave in a project; bwrap has it done through cli
	"broker/internal/placeholders": {"broker/internal/agentprofile", "broker/internal/gate/names",
		"broker/internal/guard", "broker/internal/host", "broker/internal/policy", "broker/internal/program"},
	"broker/internal/project": {"broker/internal/policy/pathname",
		"broker/internal/host", "broker/internal/policy",
		"broker/internal/policy/excerpt"},
	"broker/internal/host":      {},
	"broker/internal/only":      {},
	"broker/internal/relay":     {},
	"broker/internal/sshagent":  {"broker/internal/relay"},
	"broker/internal/nixdaemon": {"broker/internal/relay"},
	"broker/internal/wayland":   {},
	// calls of programs with an authority that their callers have not; client: runs them in the sandbox of each
	"broker/internal/tools": {"broker/client", "broker/internal/decide", "broker/internal/host", "broker/internal/policy",
		"broker/internal/program", "broker/internal/quoting", "broker/internal/relay", "broker/internal/request",
		"broker/plan", "audit"},
	"broker/internal/guard":        {},
	"broker/internal/devcontainer": {"broker/internal/quoting"}, // text in, text out
	"broker/internal/inotify":      {},
	"broker/internal/toolconf":     {}, // text in, text out
	"broker/internal/secrets":      {"shared/atomicfile", "broker/internal/guard", "broker/internal/host"},
	"broker/internal/program":      {"broker/internal/host"},
	"broker/internal/handover":     {},
	"broker/internal/idmap":        {"broker/internal/program"},
	"broker/internal/changes": {"shared/atomicfile", // whose names for a moment no sandbox can use
		"broker/internal/guard", "broker/internal/host", "broker/internal/quoting", "broker/plan"},

	// the command line as data; the commands themselves are command's and cli's
	"broker/internal/option":  {"broker/internal/policy", "broker/internal/policy/nearest", "broker/plan"},
	"broker/internal/quoting": {"broker/plan"},

	// plan.Bytes: how a name is shown
	"broker/internal/decide": {"broker/internal/policy/pathname",
		"broker/internal/policy/peer", "broker/internal/policy", "broker/plan"},
	"broker/internal/learn": {"broker/internal/policy/edit", "broker/internal/policy/pathname",
		"broker/internal/policy/peer", "broker/internal/policy", "broker/internal/program"},
	// what a session with --learn sees
	"broker/internal/learner": {"broker/internal/arbiter", "broker/internal/decide", "broker/internal/host",
		"broker/internal/learn", "broker/internal/planner", "broker/internal/policy", "broker/internal/quoting",
		"broker/internal/request"},
	// planner alone speaks both policy and plan, so that no word of policy reaches privileged code.
	// a plan in bubblewrap's words
	"broker/internal/bwrapline": {"broker/plan"},
	// the view in the words of macOS's sandbox, and back
	"broker/internal/seatbelt": {"broker/internal/guard", "broker/internal/planner"},
	// a run that it holds
	"broker/internal/held": {"audit", "broker/internal/control", "broker/internal/launch", "broker/internal/planner",
		"broker/internal/session", "broker/plan"},
	"broker/internal/planner": {"broker/internal/bwrapline", "broker/internal/secrets", "broker/internal/policy",
		"broker/internal/host",
		"broker/internal/guard", "broker/plan"},

	"broker/internal/steps": {"shared/stage", "shared/tape"},
	"broker/internal/netns": {"broker/internal/steps", "broker/plan", "shared/stage", "shared/tape"},
	"broker/internal/agent": {"broker/internal/steps", "broker/plan", "shared/stage", "shared/tape"},
	"broker/internal/child": {"broker/internal/helperclient", "broker/internal/steps", "broker/internal/netns",
		"broker/plan", "shared/wire", "shared/stage", "shared/tape"},
	// broker's main alone imports it
	"broker/internal/faststart": {"shared/atomicfile",
		"broker/internal/control", "broker/internal/handover", "broker/internal/session",
		"broker/internal/child", "broker/plan", "shared/stage", "shared/tape"},

	"broker/internal/session": {"broker/plan", "broker/internal/child", "audit", "broker/internal/idmap",
		"broker/internal/host"}, // where its folder is
	"broker/internal/caches": {"broker/internal/session"},
	// a virtual machine around the program; runs inside, and in it
	"broker/internal/machine": {"broker/plan", "shared/rtnl"},
	"broker/internal/files":   {"broker/internal/host", "broker/plan"}, // runs inside
	"broker/internal/control": {"broker/internal/files", "broker/internal/session", "broker/internal/decide",
		"broker/internal/prompt",
		"broker/plan"},
	"broker/internal/watch": {"broker/internal/control", "broker/internal/session", "broker/internal/prompt",
		"broker/plan"},
	// asks on another terminal what a session asks
	"broker/internal/attend": {"broker/client", "broker/internal/control", "broker/internal/decide",
		"broker/internal/handover", // the program's streams, and which of them are one
		"broker/internal/host", "broker/internal/launch", "broker/internal/prompt"},
	"broker/internal/launch": {"broker/internal/helperclient", "broker/internal/handover", "broker/internal/program",
		"broker/internal/child", "broker/internal/netns", "broker/internal/steps", "broker/plan", "shared/wire",
		"shared/stage", "shared/tape"},
	"broker/internal/gate": {"broker/internal/policy", "broker/internal/decide", "broker/internal/gate/...",
		"broker/internal/arbiter", "broker/internal/inotify",
		"broker/internal/rules", "broker/internal/request", "broker/internal/planner", "broker/internal/guard",
		"broker/internal/host",
		"broker/internal/agent", "broker/internal/child", "broker/internal/program", "broker/internal/quoting",
		"broker/plan", "audit"},
	"broker/internal/rules": {"broker/internal/decide", "broker/internal/host", "broker/internal/learn",
		"broker/internal/policy", "broker/internal/policy/edit", "broker/internal/policy/trust",
		"broker/internal/quoting", "broker/internal/request"}, // the policy files of a running session
	"broker/internal/gate/fuse": {},
	"broker/internal/gate/names": {"shared/atomicfile", // the names that it uses for a moment
		"broker/internal/guard", "broker/internal/host", "broker/internal/secrets"},
	"broker/internal/gate/grants": {"broker/internal/gate/fuse", "broker/internal/program"},
	"broker/internal/gate/locks":  {"broker/internal/gate/fuse"},
	"broker/internal/gate/points": {"broker/internal/gate/fuse"},
	"broker/internal/gate/served": {"broker/internal/gate/grants", "broker/internal/guard"}, // what a served root shows
	"broker/internal/gate/nodes": {"broker/internal/gate/fuse", "broker/internal/gate/names",
		"broker/internal/gate/served", "broker/internal/guard"},
	"broker/internal/gate/gatefs": {"broker/internal/gate/fuse", "broker/internal/gate/grants",
		"broker/internal/gate/locks", "broker/internal/gate/names", "broker/internal/gate/nodes",
		"broker/internal/gate/served",
		"broker/internal/guard", "broker/internal/host",
		"broker/internal/inotify", "broker/internal/secrets"},
	// what bubblewrap's words hide
	"broker/internal/gate/askfs": {"broker/internal/gate/fuse", "broker/internal/gate/grants",
		"broker/internal/gate/names", "broker/internal/guard"},
	"broker/internal/gate/notify": {"broker/internal/gate/names", "broker/internal/program", "seccompbpf",
		"broker/internal/host"}, // what proc says of a caller
	"broker/internal/gate/late": {"broker/internal/gate/names", "broker/internal/guard", "broker/internal/host",
		"broker/internal/inotify", "broker/internal/secrets"},
	"broker/internal/gate/writes": {"broker/internal/gate/names", "broker/internal/gate/notify", "broker/internal/guard",
		"broker/internal/host",
		"broker/internal/secrets", "seccompbpf"},
	// policy: the rights that a question is about
	"broker/internal/prompt": {"broker/internal/policy", "broker/internal/program", "broker/internal/decide",
		"broker/plan"},
	"broker/internal/arbiter": {"broker/internal/decide", "broker/internal/prompt", "broker/internal/policy", "audit",
		"broker/plan"},
	// host: the processes of the sandbox, to say whose packets were refused; plan: where the resolver is
	"broker/internal/network": {"broker/internal/policy/peer", "broker/internal/helperclient",
		"broker/internal/host", "broker/internal/program", "broker/internal/decide", "broker/internal/policy",
		"broker/internal/network/nameserver", "broker/internal/network/nft", "broker/internal/network/sniff",
		"broker/internal/netns", "broker/plan", "shared/wire", "shared/rtnl"},
	"broker/internal/network/nameserver": {},
	"broker/internal/network/nft":        {"shared/rtnl"},
	"broker/internal/network/sniff":      {"broker/internal/policy/peer"},
	"broker/internal/resources": {"broker/internal/host", "broker/internal/inotify", "broker/internal/program",
		"broker/plan"},

	"broker/internal/request": {"broker/internal/policy/pathname", "broker/internal/policy/edit",
		"broker/internal/agentprofile",
		"broker/internal/policy",
		"broker/internal/project", "broker/internal/host",
		"broker/internal/planner", "broker/internal/option", "broker/internal/quoting",
		"broker/internal/resources", "broker/internal/guard", "broker/internal/secrets", "broker/internal/program",
		"broker/plan"},
	// what is let in from the host
	"broker/internal/doors": {"broker/internal/policy/pathname",
		"broker/internal/request", "broker/internal/planner", "broker/internal/policy",
		"broker/internal/guard", // what is a private key
		"broker/internal/host",
		"broker/internal/option", "broker/internal/quoting", "broker/internal/decide", "broker/internal/gate",
		"broker/internal/session",
		"broker/internal/program", "broker/internal/relay", "broker/internal/sshagent", "broker/internal/nixdaemon",
		"broker/internal/wayland", "broker/internal/tools",
		"broker/internal/idmap", "broker/internal/netns", "broker/internal/child", "broker/plan", "audit"},
	"broker/internal/egress": {"broker/internal/policy/peer", "broker/internal/helperclient", "broker/internal/request",
		"broker/internal/planner", "broker/internal/policy", "broker/internal/host",
		"broker/internal/quoting", "broker/internal/decide", "broker/internal/arbiter", "broker/internal/network",
		"broker/internal/network/nameserver", "broker/internal/netns",
		"broker/internal/child", "broker/internal/launch", "broker/internal/program", "broker/plan", "shared/wire", "audit"},
	// credentials that are never inside
	// decide: with whom a request is in contact
	"broker/internal/credential": {"broker/internal/decide", "broker/internal/request", "broker/internal/planner",
		"broker/internal/policy",
		"broker/internal/policy/peer", "broker/internal/host", "broker/internal/quoting", "broker/internal/launch",
		"broker/internal/network", "broker/internal/program", "broker/internal/relay", "broker/plan", "audit",
		"shared/mark", "shared/proxied", "shared/turn"}, // to keep what a login is issued
	// what the planner plans
	// fake secrets, who opens them, and where their marks turn up
	"broker/internal/decoy": {"shared/mark", "broker/internal/host"},
	"broker/internal/input": {"broker/internal/policy/pathname", "broker/internal/decoy",
		"broker/internal/request", "broker/internal/planner", "broker/internal/policy",
		"broker/internal/host",
		"broker/internal/option", "broker/internal/quoting", "broker/internal/changes", "broker/internal/confine",
		"broker/internal/devcontainer", "broker/internal/doors",
		"broker/internal/gate", "broker/internal/guard", "broker/internal/launch", "broker/internal/machine",
		"broker/internal/only", "broker/internal/program", // which starts nothing here: it looks for QEMU
		"broker/internal/secrets", "broker/internal/toolconf",
		"seccompbpf", "broker/plan"},
	"broker/internal/explain": {"broker/internal/policy/pathname",
		"broker/internal/policy/peer", "broker/internal/request", "broker/internal/decide",
		"broker/internal/prompt", "broker/internal/policy", "broker/internal/planner",
		"broker/internal/host", "broker/internal/guard", "broker/internal/secrets", "broker/internal/option",
		"broker/internal/quoting", "broker/internal/learn", // what to suggest where a name will not come back
		"broker/internal/program", "broker/internal/network", "broker/plan", "audit"},
	"broker/internal/confine": {"broker/internal/policy/amount", "broker/internal/control", "broker/internal/prompt",
		"broker/internal/launch", "broker/internal/resources", "broker/internal/request",
		"broker/internal/planner", "broker/internal/policy", "broker/internal/host", "broker/internal/option",
		"broker/internal/quoting", "broker/internal/program",
		"broker/internal/child", "broker/plan"},
	// commands that need no run of their own, and what prints
	"broker/internal/manpage": {"broker/internal/option", "broker/internal/policy"},
	"broker/internal/records": {"broker/internal/caches", "broker/internal/command", "broker/internal/host",
		"broker/internal/option",
		"broker/internal/planner", "broker/internal/quoting", "broker/internal/session", "broker/plan"},
	"broker/internal/policycmd": {"broker/internal/policy/foreign",
		"broker/internal/policy/pathname",
		"broker/internal/command", "broker/internal/decide", "broker/internal/explain",
		"broker/internal/guard", "broker/internal/host", "broker/internal/option",
		"broker/internal/launch", "broker/internal/policy/edit", "broker/internal/policy/ownfile",
		"broker/internal/policy/trust",
		"broker/internal/planner", "broker/internal/policy",
		"broker/internal/program", "broker/internal/prompt", "broker/internal/quoting", "broker/internal/request",
		"shared/proxied",          // how sbx-proxy says that there is no keyring
		"shared/turn",             // to end a login
		"broker/internal/session", // removes the folder of a login as it does a session's layers
		"audit"},
	"broker/internal/integrate": {"shared/atomicfile",
		"broker/internal/changes", "broker/internal/command", "broker/internal/host",
		"broker/internal/option", "broker/internal/policy", "broker/internal/policy/nearest", "broker/internal/quoting",
		"broker/internal/session"},
	"broker/internal/command": {"shared/atomicfile", "broker/internal/attend", "broker/internal/policy/peer",
		"broker/internal/policy/nearest",
		"broker/internal/agentprofile", // names to complete
		"broker/internal/manpage", "broker/internal/request", "broker/internal/explain",
		"broker/internal/decide", "selftest/checks",
		"broker/internal/option", "broker/internal/quoting", "broker/client", "broker/internal/control",
		"broker/internal/watch",
		"broker/internal/session", "broker/internal/prompt", "broker/internal/host", "broker/internal/launch",
		"broker/internal/planner",
		"broker/internal/changes", "broker/internal/policy", "broker/internal/program", "broker/internal/resources",
		"broker/internal/hint", "broker/plan", "audit"},

	// for programs of others
	"broker/client": {"broker/internal/files", "broker/internal/handover", "broker/internal/control",
		"broker/internal/host", // where sessions are found in a container
		"broker/internal/prompt", "broker/plan"},

	"broker/sandbox": {"broker/client", "broker/internal/live", "broker/internal/request", "broker/internal/option",
		"broker/internal/hint", "broker/internal/launch",
		"broker/internal/planner", "broker/internal/policy", "broker/internal/steps"}, // for programs of others

	"broker/internal/repositories": {"broker/internal/gate/names", "broker/internal/guard", "broker/internal/host",
		"broker/internal/planner", "broker/internal/quoting", "broker/internal/request", "broker/plan"},
	// what to do about an error
	"broker/internal/hint": {"broker/internal/host", "broker/internal/launch", "broker/internal/option",
		"broker/internal/planner", "broker/internal/quoting",
		"broker/internal/steps", "broker/plan"},
	// what was refused and asked, for the end of a run
	"broker/internal/report": {"audit", "broker/internal/arbiter", "broker/internal/decide",
		"broker/internal/egress", "broker/internal/gate", "broker/internal/gate/notify", "broker/internal/host",
		"broker/internal/learn", "broker/internal/learner", "broker/internal/policy",
		"broker/internal/policy/pathname", "broker/internal/program", "broker/internal/quoting",
		"broker/internal/policy/peer"}, // whether a host has to be said to be one
	// what changes judged trees
	"broker/internal/mediator": {"broker/internal/agent", "broker/internal/changes", "broker/internal/child",
		"broker/internal/decide", "broker/internal/gate", "broker/internal/gate/fuse",
		"broker/internal/gate/gatefs", "broker/internal/gate/grants", "broker/internal/gate/late",
		"broker/internal/gate/names", // what happened to a name
		"broker/internal/gate/notify", "broker/internal/gate/points", "broker/internal/gate/served",
		"broker/internal/gate/writes", "broker/internal/guard", "broker/internal/host", "broker/internal/planner",
		"broker/internal/policy", "broker/internal/program", "broker/internal/quoting", "broker/internal/report",
		"broker/internal/repositories", "broker/internal/request", "broker/internal/secrets", "broker/plan"},
	// the run
	"broker/internal/live": {"audit", "broker/client", "broker/internal/agent", "broker/internal/arbiter",
		"broker/internal/caches", "broker/internal/changes", "broker/internal/child", "broker/internal/confine",
		"broker/internal/control", "broker/internal/credential", "broker/internal/decide", "broker/internal/decoy",
		"broker/internal/doors", "broker/internal/egress", "broker/internal/files", "broker/internal/gate",
		"broker/internal/gate/askfs", "broker/internal/gate/fuse", "broker/internal/gate/gatefs",
		"broker/internal/gate/notify", "broker/internal/gate/served", "broker/internal/guard",
		"broker/internal/handover", "broker/internal/helperclient", "broker/internal/host",
		"broker/internal/input", "broker/internal/launch", "broker/internal/learner", "broker/internal/mediator",
		"broker/internal/netns", "broker/internal/placeholders", "broker/internal/planner",
		"broker/internal/policy", "broker/internal/policy/peer", "broker/internal/program",
		"broker/internal/prompt", "broker/internal/quoting", "broker/internal/report", "broker/internal/request",
		"broker/internal/rules", "broker/internal/session", "broker/internal/steps", "broker/internal/tools",
		// seccompbpf: by which call a session's filter tells that it is one
		"broker/plan", "seccompbpf", "shared/mark", "shared/tape"},
	// sbx in bubblewrap's words: no policy; session: where records are; arbiter, askfs: what live is told of who asks
	"broker/internal/bwrap": {"audit", "broker/internal/arbiter", "broker/internal/child",
		"broker/internal/gate/askfs", "broker/internal/gate/gatefs",
		"broker/internal/gate/served", "broker/internal/host", // host: what is mounted below a directory that is shown
		"broker/internal/session",
		"broker/internal/steps", "broker/plan", "seccompbpf", "shared/stage"},
	// the command line
	"broker/internal/cli": {"audit", "broker/internal/held", "broker/internal/seatbelt",
		"broker/internal/agent", "broker/internal/bwrap", "broker/internal/bwrapline", "broker/internal/child",
		"broker/internal/command",
		"broker/internal/confine",
		"broker/internal/egress", "broker/internal/explain", "broker/internal/files", "broker/internal/gate",
		"broker/internal/gate/gatefs", "broker/internal/gate/grants",
		"broker/internal/hint", "broker/internal/host", "broker/internal/idmap", "broker/internal/input",
		"broker/internal/integrate",
		"broker/internal/launch", "broker/internal/live", "broker/internal/machine", "broker/internal/network",
		"broker/internal/option",
		"broker/internal/placeholders",
		"broker/internal/planner", "broker/internal/policycmd", "broker/internal/program", "broker/internal/quoting",
		"broker/internal/records",
		"broker/internal/request",
		"broker/internal/resources", "broker/internal/session", "broker/internal/steps", "broker/internal/tools",
		"broker/plan",
	},
	"broker/helpertest": {"broker/internal/helperclient", "broker/internal/steps", "broker/internal/child", "broker/plan"},
	"broker":            {"broker/internal/cli", "broker/internal/faststart"},

	"selftest":            {},
	"selftest/bench":      {},
	"selftest/checks":     {},
	"selftest/compare":    {},
	"selftest/fileops":    {},
	"selftest/counttests": {},
	"selftest/linked":     {},
	"selftest/need":       {},
	"selftest/netbench":   {},
	"selftest/plans":      {"broker/plan", "shared/tape"},
	"selftest/probe":      {},
	"selftest/vm":         {},
}

// testsMayImport are further packages of ours for test files.
var testsMayImport = map[string][]string{
	// the example reads the record
	"broker/sandbox": {"audit"},
	// a name as a pattern
	"broker/internal/policy/edit": {"broker/internal/policy/pathname"},
	// what profiles say, as a run asks for it
	"broker/internal/seatbelt": {"broker/internal/host", "broker/internal/policy", "broker/internal/policy/mac",
		"broker/internal/policy/pathname", "broker/internal/request", "broker/plan"},
	// is a hostile caller of sbx-helper, reads the plan that a session leaves, performs checks with layers missing
	"selftest":                  {"broker/plan", "shared/wire", "broker/helpertest", "selftest/checks"},
	"shared/stage":              {"selftest/plans"},
	"broker/plan":               {"selftest/plans"},
	"broker/internal/child":     {"selftest/plans"},
	"broker/internal/agent":     {"selftest/plans", "broker/internal/child"},
	"broker/internal/netns":     {"selftest/plans", "broker/internal/child", "broker/internal/netns"},
	"broker/internal/faststart": {"selftest/plans"},
	// reads what bwrapline writes
	"broker/internal/bwrap": {"broker/internal/bwrapline"},
	// runs itself in a sandbox
	"broker/internal/gate/notify": {"broker/plan", "shared/stage", "broker/internal/child", "broker/internal/agent"},
}

// mayStart lists the files beside package program that start programs, or name the system call, with the reason.
var mayStart = map[string]string{
	"broker/internal/launch/outside.go":   "the command of a run without a sandbox, or sandbox-exec, as the user asked",
	"broker/internal/tools/host.go":       "a program.Program, by its own Command; os/exec says how it ended",
	"helper/caller.go":                    "itself, with an empty environment",
	"host/forward.go":                     "iptables, from the system's directories, when root asks for it",
	"broker/internal/child/bubblewrap.go": "the program of the sandbox, inside",
	"broker/internal/child/finish.go":     "the program of the sandbox, inside",
	"broker/internal/child/spawn.go":      "programs of the sandbox, inside",
	"broker/internal/machine/run.go":      "QEMU, by the path of a program.Program, and xz or zstd, inside",
	"broker/internal/machine/programs.go": "programs of the machine, in it",
	"broker/internal/machine/starter.go":  "a program of the machine, in it",
	"broker/internal/netns/netexec.go":    "the network's carrier, by the path of a program.Program: see startsByPath",
	"selftest/checks/run.go":              "sbx selftest: sbx itself, and the probe as a program.Program has been checked",
	"seccompbpf/gen/main.go":              "a generator, not part of the product",
}

// startsByPath lists the files that hand a path to netns.Network.Exec.
var startsByPath = map[string]string{"broker/internal/network/egress.go": "of a program.Program"}

// thirdParty is what code outside the standard library is for, by the first folder that may use it.
var thirdParty = map[string]map[string]string{
	"shared": {"golang.org/x/sys": "numbers and structures of the kernel's interface; no code of it runs in the child"},
	"helper": {"golang.org/x/sys": "the kernel's interface"},
	"broker": {
		"golang.org/x/sys": "the kernel's interface", "github.com/BurntSushi/toml": "configuration",
		"golang.org/x/net/dns/dnsmessage": "the resolver's messages",
		"github.com/mattn/go-isatty":      "what is a terminal", "golang.org/x/term": "its settings",
		"kernel.org/pub/linux/libs/security/libcap/cap": "capabilities of files and processes",
		"github.com/vishvananda/netlink":                "addresses and routes of the host",
		"github.com/tailscale/hujson":                   "a development container's JSON with comments",
	},
	"host": {
		"github.com/containerd/cgroups/v3": "control groups",
		"github.com/coreos/go-systemd/v22": "scopes, which cgroups/v3 does not make for users",
		"github.com/godbus/dbus/v5":        "the user's bus, for go-systemd",
		"github.com/coreos/go-iptables":    "iptables",
	},
	"proxy": {"golang.org/x/sys": "the kernel's interface",
		"github.com/landlock-lsm/go-landlock": "what it gives up before it serves",
		"filippo.io/age":                      "sealed secrets",
		"github.com/godbus/dbus/v5":           "the user's keyring", "golang.org/x/term": "typing without an echo"},
	"audit":      {"golang.org/x/sys": "locks and synced writes"},
	"seccompbpf": {"golang.org/x/sys": "tests load filters"},
	"selftest": {"golang.org/x/sys": "the kernel's interface",
		"github.com/rogpeppe/go-internal":          "testscript, tests only",
		"github.com/santhosh-tekuri/jsonschema/v6": "answers against docs/schema.json, tests only"},
}

// testsMayUse are modules for test files alone: nothing of the broker's is linked with them.
var testsMayUse = map[string]string{
	// compares what it writes and reads with what containerd's library does
	"broker/internal/resources": "github.com/containerd/cgroups/v3",
}

// notLinked is what sbx and sbx-helper must not be linked with, however it would come in: sbx-host and sbx-proxy are.
var notLinked = [...]string{"github.com/containerd", "github.com/coreos", "github.com/godbus",
	"google.golang.org/protobuf", "github.com/cilium", "github.com/sirupsen", "net/http", "crypto/tls",
	"crypto/x509", "github.com/landlock-lsm", "filippo.io"}

// What is built for macOS imports nothing that is Linux's alone, nor do its tests: a file of either without its tag is
// found here, and what it calls by make check.
func TestMacImports(t *testing.T) {
	for _, arch := range []string{"arm64", "amd64"} {
		c := exec.Command("go", "list", "-test", "-deps", "../...")
		c.Env = append(os.Environ(), "GOOS=darwin", "GOARCH="+arch, "CGO_ENABLED=0")
		out, err := c.CombinedOutput()
		for _, want := range []string{"/broker\n", "/broker/internal/seatbelt\n", "/broker/internal/explain\n"} {
			if err != nil || !strings.Contains(string(out), want) {
				t.Fatalf("%s: %v\n%s", arch, err, out)
			}
		}
		for _, never := range []string{"/shared/stage\n", "/broker/internal/child\n", "/broker/internal/gate\n"} {
			if strings.Contains(string(out), never) {
				t.Errorf("%s: %s is built for macOS", arch, strings.TrimSpace(never))
			}
		}
	}
}

// What sbx-host and sbx-proxy are for stays out of every start of sbx.
func TestLibrariesOfTheHostProgramStayThere(t *testing.T) {
	deps := func(pkg string) (found []string) {
		out, err := exec.Command("go", "list", "-deps", pkg).Output()
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(out)) {
			line = strings.TrimSpace(line)
			if slices.ContainsFunc(notLinked[:], func(m string) bool { return line == m || strings.HasPrefix(line, m+"/") }) {
				found = append(found, line)
			}
		}
		return found
	}
	for _, pkg := range []string{"../broker", "../broker/sandbox", "../broker/client", "../helper", "./probe"} {
		if found := deps(pkg); len(found) > 0 {
			t.Errorf("%s is linked with %q", pkg, found)
		}
	}
	for _, pkg := range []string{"../host", "../proxy"} { // the control
		if len(deps(pkg)) == 0 {
			t.Errorf("%s is not linked with them either", pkg)
		}
	}
}

// mutable lists package-level variables that are neither errors, arrays nor assertions, with the reason.
var mutable = map[string]string{
	"seccompbpf/gen.skip":             "a generator's table, not part of the product",
	"broker/internal/faststart.entry": "written once, before the runtime starts: there is nobody yet to pass it to",
	"broker/internal/guard.indexSecrets": "an index of the table beside it, made once, when it is first wanted, and " +
		"only read",
	"broker/internal/guard.builtIn": "the built-in rules, compiled once, and only read",
	"helper.entered":                "written once, by the entry point before the runtime starts",
	"seccompbpf/gen.armPrivate":     "a generator's table, not part of the product",
}

// long lists files of more than 450 lines that are not tables or tests.
var long = map[string]string{}

const maxLines = 450

// source is one parsed file.
type source struct {
	dir, name string // dir relative to the top
	file      *ast.File
	lines     int
	test      bool
}

func (s *source) path() string { return path.Join(s.dir, s.name) }

// module is how the import paths of this module's packages begin, by go.mod.
func module(t *testing.T) string {
	t.Helper()
	mod, err := os.ReadFile("../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	line, _, _ := strings.Cut(string(mod), "\n")
	return strings.TrimPrefix(line, "module ") + "/"
}

// parsed is the tree, read once for all tests, which only look at it.
var parsed = sync.OnceValues(parseAll)

// parseTree has every Go file, whatever it is built for.
func parseTree(t *testing.T) []source {
	t.Helper()
	all, err := parsed()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func parseAll() (all []source, err error) {
	fset := token.NewFileSet()
	top, err := filepath.Abs("..")
	if err != nil {
		return nil, err
	}
	err = filepath.WalkDir(top, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && p != top && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "bin" ||
			d.Name() == "dist") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(p, ".go") {
			return nil
		}
		f, err := parser.ParseFile(fset, p, nil, parser.SkipObjectResolution|parser.ParseComments)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(top, p)
		n := fset.File(f.FileStart).LineCount()
		if len(f.Comments) > 0 && strings.HasPrefix(f.Comments[0].List[0].Text, "//go:build ") {
			n -= 2 // for which system a file is has not to be read
		}
		all = append(all, source{dir: path.Dir(rel), name: d.Name(), file: f, lines: n,
			test: strings.HasSuffix(p, "_test.go")})
		return err
	})
	return all, err
}

func (s *source) imports() []string {
	var out []string
	for _, i := range s.file.Imports {
		p, _ := strconv.Unquote(i.Path.Value)
		out = append(out, p)
	}
	return out
}

func allowed(list []string, pkg string) bool {
	return slices.ContainsFunc(list, func(a string) bool {
		if above, ok := strings.CutSuffix(a, "/..."); ok {
			return strings.HasPrefix(pkg, above+"/")
		}
		return a == pkg
	})
}

func TestImports(t *testing.T) {
	own := module(t)
	for _, s := range parseTree(t) {
		row, known := mayImport[s.dir]
		if !known {
			t.Errorf("%s: package %s has no row in mayImport", s.path(), s.dir)
			continue
		}
		for _, imp := range s.imports() {
			ours, isOurs := strings.CutPrefix(imp, own)
			first, _, _ := strings.Cut(imp, "/")
			switch {
			case isOurs && ours == s.dir && s.test:
			case isOurs && !allowed(row, ours) && !(s.test && (ours == "selftest/need" || allowed(testsMayImport[s.dir],
				ours))):
				t.Errorf("%s imports %s, which mayImport does not have", s.path(), ours)
			case !isOurs && strings.Contains(first, ".") && !mayUse(s.dir, imp, s.test):
				t.Errorf("%s imports %s, which thirdParty does not have for its folder", s.path(), imp)
			}
		}
	}
}

// saysItsCallers are packages whose comment names every package that imports them, and the one that only these may
// import.
var saysItsCallers = map[string]bool{
	"shared/tape": true, "shared/stage": true, "broker/internal/steps": true, "broker/internal/child": true,
	"broker/internal/agent": true,
	"broker/internal/netns": true, "broker/internal/faststart": true, "broker/internal/launch": true,
}

// A package comment says who calls the package: whoever imports it is named there by the last part of its path, or by
// its folder, and nobody else is.
func TestCommentsNameCallers(t *testing.T) {
	comment, callers, names, own := map[string]string{}, map[string][]string{}, map[string]bool{}, module(t)
	for _, s := range parseTree(t) {
		names[path.Base(s.dir)] = true
		if s.file.Doc != nil && !s.test {
			comment[s.dir] += s.file.Doc.Text()
		}
		for _, imp := range s.imports() {
			if ours, isOurs := strings.CutPrefix(imp, own); isOurs && saysItsCallers[ours] && !s.test &&
				!slices.Contains(callers[ours], s.dir) {
				callers[ours] = append(callers[ours], s.dir)
			}
		}
	}
	for pkg := range saysItsCallers {
		for _, c := range callers[pkg] {
			if !regexp.MustCompile(`\b` + path.Base(c) + `\b`).MatchString(comment[pkg]) {
				t.Errorf("%s imports %s, whose comment does not name it", c, pkg)
			}
		}
		// What comes after "It must never" is about callers alone.
		_, said, _ := strings.Cut(strings.Join(strings.Fields(comment[pkg]), " "), "must never ")
		_, said, _ = strings.Cut(said, ". ")
		for _, w := range regexp.MustCompile(`[^ ,;:.()]+`).FindAllString(said, -1) {
			if names[w] && !slices.ContainsFunc(callers[pkg], func(c string) bool { return path.Base(c) == w }) {
				t.Errorf("the comment of %s names %s, which does not import it", pkg, w)
			}
		}
		if len(callers[pkg]) == 0 || said == "" {
			t.Errorf("nobody imports %s, or its comment says nobody", pkg)
		}
	}
	if c := callers["broker/internal/faststart"]; len(c) != 1 || c[0] != "broker" {
		t.Errorf("faststart, which may be left out, is imported by %q", c)
	}
}

func mayUse(dir, imp string, test bool) bool {
	first, _, _ := strings.Cut(dir, "/")
	if module := testsMayUse[dir]; test && module != "" && strings.HasPrefix(imp, module+"/") {
		return true
	}
	for module := range thirdParty[first] {
		if imp == module || strings.HasPrefix(imp, module+"/") {
			return true
		}
	}
	return false
}

// TestPackagesAreOnTheMap: docs/architecture.md says of each package of the table what it holds, by its path or its
// last name.
func TestPackagesAreOnTheMap(t *testing.T) {
	page, err := os.ReadFile("../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "\n## Packages\n")
	onMap, _, _ := strings.Cut(rest, "\n## ")
	for pkg := range mayImport {
		if !strings.Contains(onMap, "`"+pkg+"`") && !strings.Contains(onMap, "`"+path.Base(pkg)+"`") {
			t.Errorf("docs/architecture.md, \"Packages\", does not name %s", pkg)
		}
	}
}

// The tables must not allow circles, whether or not somebody walks them.
func TestImportTableHasNoCircle(t *testing.T) {
	state := map[string]int{}
	var visit func(string, []string)
	visit = func(pkg string, way []string) {
		switch state[pkg] {
		case 1:
			t.Errorf("circle: %s", strings.Join(append(way, pkg), " → "))
			return
		case 2:
			return
		}
		state[pkg] = 1
		for other := range mayImport {
			if other != pkg && allowed(mayImport[pkg], other) {
				visit(other, append(way, pkg))
			}
		}
		state[pkg] = 2
	}
	for pkg := range mayImport {
		visit(pkg, nil)
	}
}

func TestUnsafeIsInTheFileName(t *testing.T) {
	for _, s := range parseTree(t) {
		ok := strings.HasSuffix(s.name, "_unsafe.go") || strings.HasSuffix(s.name, "_unsafe_test.go")
		if slices.Contains(s.imports(), "unsafe") && !ok {
			t.Errorf("%s imports unsafe: move that code to a file ending in _unsafe.go", s.path())
		}
	}
}

func TestNoInit(t *testing.T) {
	for _, s := range parseTree(t) {
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" && s.dir != "helper" {
				t.Errorf("%s has an init function: it runs in every start of sbx, whether needed or not", s.path())
			}
		}
	}
}

func TestNoMutablePackageState(t *testing.T) {
	for _, s := range parseTree(t) {
		if s.test {
			continue // flags of tests
		}
		for _, d := range s.file.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.VAR {
				continue
			}
			for _, spec := range g.Specs {
				v := spec.(*ast.ValueSpec)
				for i, name := range v.Names {
					_, listed := mutable[s.dir+"."+name.Name]
					if name.Name != "_" && !listed && !constant(v, i) && !embedded(g) {
						t.Errorf("%s: variable %s is package-level state: pass it, or make it an array or a function", s.path(),
							name.Name)
					}
				}
			}
		}
	}
}

// constant says whether a variable is a sentinel error or an array that is written out.
func constant(v *ast.ValueSpec, i int) bool {
	if i >= len(v.Values) {
		return false
	}
	switch x := v.Values[i].(type) {
	case *ast.CallExpr:
		f, ok := x.Fun.(*ast.SelectorExpr)
		if !ok {
			return false
		}
		pkg, ok := f.X.(*ast.Ident)
		return ok && (pkg.Name+"."+f.Sel.Name == "errors.New" || pkg.Name+"."+f.Sel.Name == "fmt.Errorf")
	case *ast.CompositeLit:
		a, ok := x.Type.(*ast.ArrayType)
		return ok && a.Len != nil
	}
	return false
}

func embedded(g *ast.GenDecl) bool {
	return g.Doc != nil && strings.Contains(g.Doc.List[len(g.Doc.List)-1].Text, "go:embed")
}

// Only command prints, and only main packages exit.
func TestWhoPrintsAndExits(t *testing.T) {
	for _, s := range parseTree(t) {
		if s.test || s.file.Name.Name == "main" {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			x, ok := sel.X.(*ast.Ident)
			if !ok {
				return true
			}
			name := x.Name + "." + sel.Sel.Name
			switch {
			case name == "os.Exit" || strings.HasPrefix(name, "log.Fatal"):
				t.Errorf("%s: %s: only main exits", s.path(), name)
			case s.dir != "broker/internal/command" && (name == "os.Stdout" || name == "os.Stderr" || name == "fmt.Print" ||
				name == "fmt.Printf" || name == "fmt.Println"):
				t.Errorf("%s: %s: only command prints", s.path(), name)
			}
			return true
		})
	}
}

// A test that cannot run here is a failure where SBX_MUST_WORK says so: none skips by itself.
func TestOnlyNeedSkips(t *testing.T) {
	for _, s := range parseTree(t) {
		ast.Inspect(s.file, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok || !s.test {
				return true
			}
			switch sel.Sel.Name {
			case "Skip", "Skipf", "SkipNow":
				if x, ok := sel.X.(*ast.Ident); ok && (x.Name == "t" || x.Name == "b" || x.Name == "tb") {
					t.Errorf("%s: %s.%s: use selftest/need", s.path(), x.Name, sel.Sel.Name)
				}
			}
			return true
		})
	}
}

// Everything that sbx starts outside comes from package program, which finds and checks it. What else names a way to
// start a program stands in mayStart. Test programs below selftest are no part of the product, but for sbx selftest's
// own.
func TestWhoStartsPrograms(t *testing.T) {
	ways := map[string]bool{"os.StartProcess": true, "syscall.StartProcess": true, "syscall.ForkExec": true,
		"syscall.Exec": true, "unix.Exec": true,
		"syscall.SYS_EXECVE": true, "unix.SYS_EXECVE": true, "syscall.SYS_EXECVEAT": true, "unix.SYS_EXECVEAT": true}
	used, byPath := map[string]bool{}, 0
	for _, s := range parseTree(t) {
		if s.test || s.dir == "broker/internal/program" || strings.HasPrefix(s.dir, "selftest") &&
			s.dir != "selftest/checks" {
			continue
		}
		starts := slices.Contains(s.imports(), "os/exec")
		ast.Inspect(s.file, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			x, _ := sel.X.(*ast.Ident)
			starts = starts || x != nil && ways[x.Name+"."+sel.Sel.Name]
			if inner, ok := sel.X.(*ast.SelectorExpr); ok && sel.Sel.Name == "Exec" && inner.Sel.Name == "ns" {
				if byPath++; startsByPath[s.path()] == "" {
					t.Errorf("%s: only a program.Program's path may be given to Network.Exec", s.path())
				}
			}
			return true
		})
		if used[s.path()] = starts; starts && mayStart[s.path()] == "" && !strings.HasPrefix(s.dir, "seccompbpf") {
			t.Errorf("%s starts programs: have package program do it, which checks them", s.path())
		}
	}
	for file := range mayStart {
		if !used[file] {
			t.Errorf("%s starts no program any more: take it out of mayStart", file)
		}
	}
	if byPath != len(startsByPath) {
		t.Errorf("Network.Exec is called in %d places", byPath)
	}
}

func TestFilesCanBeReadInOneGo(t *testing.T) {
	for _, s := range parseTree(t) {
		_, listed := long[s.path()]
		if s.lines > maxLines && !s.test && !strings.HasSuffix(s.name, "table.go") && !listed {
			t.Errorf("%s has %d lines, more than %d", s.path(), s.lines, maxLines)
		}
	}
}

// maxFunction bounds a function's body, in lines without its tables. Tests may be longer.
const maxFunction = 60

// longFunctions are those over it, which are to become shorter.
var longFunctions = map[string]string{
	"broker/internal/control.obey":           "one case for each word of the protocol",
	"broker/internal/nixdaemon.pass":         "one case for each operation of the protocol",
	"broker/internal/guard.workspaceNames":   "a table, written as code",
	"broker/internal/policy.keyTable":        "a table: a row for each setting",
	"broker/internal/policy/manual.Sentence": "a table: a sentence for each setting",
	"selftest/checks.nixDaemon":              "a stand-in for a daemon",
	"selftest/probe.execWay":                 "one case for each way to run something",
}

// A function that is read in one go has one thing to do. The list may only become shorter.
func TestFunctionsHaveOneThingToDo(t *testing.T) {
	listed := map[string]bool{}
	for _, s := range parseTree(t) {
		if s.test {
			continue
		}
		text, err := os.ReadFile(filepath.Join("..", s.path()))
		if err != nil {
			t.Fatal(err)
		}
		start := int(s.file.FileStart)
		lines := func(from, to token.Pos) int { return strings.Count(string(text[int(from)-start:int(to)-start]), "\n") }
		for _, d := range s.file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Body == nil {
				continue
			}
			n := lines(f.Body.Lbrace, f.Body.Rbrace) - 1
			ast.Inspect(f.Body, func(x ast.Node) bool {
				table, ok := x.(*ast.CompositeLit)
				if ok && !hasFunction(table) {
					n -= lines(table.Lbrace, table.Rbrace)
				}
				return !ok || hasFunction(table)
			})
			if n <= maxFunction {
				continue
			}
			name := s.dir + "." + f.Name.Name
			if listed[name] = true; longFunctions[name] == "" {
				t.Errorf("%s: %s has %d lines, more than %d: divide it by meaning", s.path(), f.Name.Name, n, maxFunction)
			}
		}
	}
	for name := range longFunctions {
		if !listed[name] {
			t.Errorf("%s is short by now: take it out of longFunctions", name)
		}
	}
}

// hasFunction says whether something is done in a composite literal: it is no table then.
func hasFunction(l *ast.CompositeLit) bool {
	found := false
	ast.Inspect(l, func(x ast.Node) bool {
		_, ok := x.(*ast.FuncLit)
		found = found || ok
		return !found
	})
	return found
}

// large are packages of more than maxPackage lines, which are to become smaller.
var large = map[string]string{}

const maxPackage = 5000

// A package that nobody can read in a day has more than one subject.
func TestPackagesHaveOneSubject(t *testing.T) {
	lines := map[string]int{}
	for _, s := range parseTree(t) {
		if !s.test {
			lines[s.dir] += s.lines
		}
	}
	for dir, n := range lines {
		if _, listed := large[dir]; n > maxPackage && !listed {
			t.Errorf("package %s has %d lines, more than %d", dir, n, maxPackage)
		}
	}
	for dir := range large {
		if lines[dir] <= maxPackage {
			t.Errorf("package %s has %d lines: take it out of large", dir, lines[dir])
		}
	}
}

// maxColumns bounds a line of Go, in characters. What the helper links is bounded in lines, so that its code may be
// longer; text of other languages (in raw strings) and generated files may be, too.
const maxColumns = 120

func TestLinesCanBeReadAtOnce(t *testing.T) {
	for _, s := range parseTree(t) {
		if ast.IsGenerated(s.file) || s.dir == "helper" || strings.HasPrefix(s.dir, "shared/") {
			continue
		}
		text, err := os.ReadFile(filepath.Join("..", s.path()))
		if err != nil {
			t.Fatal(err)
		}
		raw := map[int]bool{} // lines that end or lie in a raw string
		start := int(s.file.FileStart)
		ast.Inspect(s.file, func(n ast.Node) bool {
			if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING && l.Value[0] == '`' {
				first := strings.Count(string(text[:int(l.Pos())-start]), "\n")
				for i := range strings.Count(l.Value, "\n") + 1 {
					raw[first+i] = true
				}
			}
			return true
		})
		for i, line := range strings.Split(string(text), "\n") {
			if n := utf8.RuneCountInString(line); n > maxColumns && !raw[i] {
				t.Errorf("%s:%d has %d characters", s.path(), i+1, n)
			}
		}
	}
}

// What runs with privileges is counted in every run of the tests, so that its growth is seen.
func TestPrivilegedLines(t *testing.T) {
	count := map[string]int{}
	total := 0
	for _, s := range parseTree(t) {
		if first, _, _ := strings.Cut(s.dir, "/"); !s.test && (first == "helper" || first == "shared") {
			count[s.dir] += s.lines
			total += s.lines
		}
	}
	if total == 0 {
		t.Fatal("nothing found in shared and helper")
	}
	t.Logf("privileged lines: %d %v", total, count)
}
