package decide

import (
	"strings"

	"sbx.example/sbx/broker/internal/policy"
)

// Tools is the folder inside in which tools stand.
const Tools = "/tool"

// The operations of an Ask about a call of a tool, see ToolCall. What runs on the host is asked about each time: no
// rule and no earlier answer allows it.
const (
	Call       = "call"
	CallOnHost = "call-on-host"
)

// ToolCall is a call of a tool as an access that is decided, asked about and recorded: a name below the tool, so that
// "this one" means these arguments and "the directory" every call of it. words are the arguments as they are typed into
// a shell. They are one name: a slash in them is written as |.
func ToolCall(pid int, tool, words string, onHost bool) Ask {
	switch words { // what stands in for these is how no other arguments are written
	case "":
		words = "(no arguments)"
	case ".", "..":
		words = "'" + words + "'"
	}
	a := Ask{PID: pid, Op: Call, Kind: policy.KindSocket,
		Path: Tools + "/" + tool + "/" + strings.NewReplacer("%", "%25", "|", "%7C", "/", "|").Replace(words)}
	if onHost {
		a.Op = CallOnHost
	}
	return a
}
