package decide

import (
	"crypto/sha256"
	"fmt"
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

// ToolCall is a call of a tool as an access that is decided, asked about and recorded, see Below. words are the
// arguments as they are typed into a shell.
func ToolCall(pid int, tool, words string, onHost bool) Ask {
	if words == "" {
		words = "(no arguments)" // how no arguments are typed
	}
	a := Ask{PID: pid, Op: Call, Kind: policy.KindSocket, Path: Below(Tools+"/"+tool, words)}
	if onHost {
		a.Op = CallOnHost
	}
	return a
}

// maxWords is how many bytes of a program's own words stand in a name.
const maxWords = 3000

// Below is what a program asks of a place, in its own words, as a name below that place: "this one" means these words,
// and "the directory" all that is asked of it. It is one name, of a bounded length: a slash is written as |, and of
// words beyond maxWords their number and their hash. No two texts have the same name.
func Below(place, words string) string {
	if words == "." || words == ".." {
		words = "'" + words + "'"
	}
	words = strings.NewReplacer("%", "%25", "|", "%7C", "/", "|").Replace(words)
	if more := len(words) - maxWords; more > 0 {
		words = fmt.Sprintf("%s[+%d bytes, sha256 %x]", words[:maxWords], more, sha256.Sum256([]byte(words)))
	}
	return place + "/" + words
}

// Whole says whether a name that Below made has all of the words.
func Whole(words string) bool { return len(Below("", words)) <= len("/")+maxWords }
