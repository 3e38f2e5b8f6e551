package control

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"sbx.example/sbx/broker/internal/files"
	"sbx.example/sbx/broker/internal/prompt"
	"sbx.example/sbx/broker/plan"
)

// Version is the protocol's. A client that names another is refused.
const Version = 1

// Command is what a client sent, checked and complete.
type Command struct {
	Type    string
	Version int
	SID     string
	ID      string
	Scope   string
	Life    string
	Until   string
	Persist string
	Signal  string
	Kind    string
	Name    plan.Bytes
	Cwd     plan.Bytes
	Argv    []plan.Bytes
	Env     []plan.Bytes
	TTY     bool
	NoLinks bool
	Fds     int
	More    int
	Rows    int
	Cols    int
	PID     int
	Last    int64
	Tag     int
	File    files.Request
}

// Error is what the client is told before its connection ends.
type Error struct{ Code, Message string }

func (e *Error) Error() string { return e.Message }

// The codes of errors.
const (
	CodeSyntax   = "syntax"   // no JSON object, not UTF-8, too long
	CodeType     = "type"     // unknown type, or one that only the broker sends
	CodeField    = "field"    // unknown, missing or unfit member
	CodeUnknown  = "unknown"  // no question has this id
	CodeAnswered = "answered" // the question was settled already
	CodeRefused  = "refused"  // policy or mode forbids it
	CodeBusy     = "busy"     // too many clients
	CodePeer     = "peer"     // not this user, or inside a sandbox
	CodeNotHere  = "not-here" // this session does not offer it
	CodeSession  = "session"  // the hello named another session
	CodeVersion  = "version"  // the hello named another version
	CodeSlow     = "slow"     // the client does not read
)

func errf(code, format string, args ...any) *Error {
	return &Error{code, fmt.Sprintf(format, args...)}
}

// shape is the row of one type: the members it must and may have.
type shape struct {
	typ  string
	must string // space-separated
	may  string
}

// shapes is every type that a client may send.
func shapes() [13]shape {
	return [13]shape{
		{typ: "hello", must: "version", may: "sid"},
		{typ: "cmd.approve", must: "id", may: "scope life until persist last"},
		{typ: "cmd.deny", must: "id", may: "scope life until persist last"},
		{typ: "cmd.pending"},
		{typ: "cmd.revoke", must: "kind name"},
		{typ: "cmd.reveal", must: "name", may: "life until"},
		{typ: "cmd.undo", must: "id"},
		{typ: "cmd.exec", must: "argv", may: "cwd env tty fds rows cols tag more nolinks"},
		{typ: "cmd.file", must: "op path fds", may: "root offset limit parents inplace pattern depth tag"},
		{typ: "cmd.kill", may: "signal pid"},
		{typ: "cmd.freeze"},
		{typ: "cmd.thaw"},
		{typ: "cmd.stats"},
	}
}

// parseCommand reads one line. Only one object, only known members of the right kind, each once.
func parseCommand(line []byte) (Command, *Error) {
	var c Command
	members, err := splitObject(line)
	if err != nil {
		return c, errf(CodeSyntax, "reading line: %v", err)
	}
	for _, m := range members {
		if m.name == "type" {
			if err := setString(&c.Type, m.raw); err != nil {
				return c, errf(CodeField, "type: %v", err)
			}
		}
	}
	if c.Type == "" {
		return c, errf(CodeType, "type is missing")
	}
	for _, s := range shapes() {
		if s.typ == c.Type {
			return c, c.fill(s, members)
		}
	}
	return c, errf(CodeType, "unknown type %s", plan.Bytes(head(c.Type)).Quote())
}

func (c *Command) fill(s shape, members []member) *Error {
	for need := range strings.FieldsSeq(s.must) {
		found := false
		for _, m := range members {
			found = found || m.name == need
		}
		if !found {
			return errf(CodeField, "%s needs %s", s.typ, need)
		}
	}
	for _, m := range members {
		if m.name == "type" {
			continue
		}
		if !has(s.must, m.name) && !has(s.may, m.name) {
			return errf(CodeField, "%s has no member %s", s.typ, plan.Bytes(head(m.name)).Quote())
		}
		if err := c.set(m); err != nil {
			return errf(CodeField, "%s: %v", m.name, err)
		}
	}
	if s.typ == "cmd.file" {
		if err := c.File.Check(); err != nil {
			return errf(CodeField, "%v", err)
		}
	}
	return nil
}

func has(list, word string) bool {
	for w := range strings.FieldsSeq(list) {
		if w == word {
			return true
		}
	}
	return false
}

func head(s string) string { return s[:min(len(s), 40)] }

func (c *Command) set(m member) error {
	switch m.name {
	case "version":
		return setInt(&c.Version, m.raw)
	case "fds":
		return setInt(&c.Fds, m.raw)
	case "more":
		return setInt(&c.More, m.raw)
	case "rows":
		return setInt(&c.Rows, m.raw)
	case "cols":
		return setInt(&c.Cols, m.raw)
	case "tag":
		return setInt(&c.Tag, m.raw)
	case "pid":
		return setInt(&c.PID, m.raw)
	case "last":
		return setLong(&c.Last, m.raw)
	case "tty":
		return setBool(&c.TTY, m.raw)
	case "nolinks":
		return setBool(&c.NoLinks, m.raw)
	case "id":
		if err := setString(&c.ID, m.raw); err != nil {
			return err
		}
		if len(c.ID) != 32 || strings.Trim(c.ID, "0123456789abcdef") != "" {
			return errors.New("want 32 hexadecimal digits")
		}
		return nil
	case "cwd":
		return setBytes(&c.Cwd, m.raw)
	case "name":
		return setBytes(&c.Name, m.raw)
	case "argv":
		return setList(&c.Argv, m.raw, 1)
	case "persist":
		return setPersist(&c.Persist, m.raw)
	case "env":
		return setList(&c.Env, m.raw, 0)
	}
	if set := c.fileMember(m.name); set != nil {
		return set(m.raw)
	}
	for _, f := range [...]struct {
		name string
		dst  *string
	}{{"sid", &c.SID}, {"scope", &c.Scope}, {"life", &c.Life}, {"until", &c.Until},
		{"signal", &c.Signal}, {"kind", &c.Kind}} {
		if f.name == m.name {
			return setString(f.dst, m.raw)
		}
	}
	panic("BUG(sbx): member " + m.name + " is in the table and nowhere else")
}

// setPersist reads the name of a store; true is the user's own, false none.
func setPersist(dst *string, raw json.RawMessage) error {
	switch string(raw) {
	case "true":
		*dst = "user"
		return nil
	case "false":
		return nil
	}
	return setString(dst, raw)
}

// Answer is the decision of an approve or deny.
func (c *Command) Answer(now time.Time) (prompt.Answer, *Error) {
	word := "deny"
	if c.Type == "cmd.approve" || c.Type == "cmd.reveal" {
		word = "allow"
	}
	a, err := prompt.NewAnswer(word, c.Scope, c.Life, c.Until, c.Persist, now)
	if err != nil {
		return prompt.Answer{}, errf(CodeField, "%v", err)
	}
	a.By, a.Last = prompt.BySocket, int(c.Last)
	return a, nil
}

type member struct {
	name string
	raw  json.RawMessage
}

// splitObject reads one flat object; values are left as they are.
func splitObject(line []byte) ([]member, error) {
	if !utf8.Valid(line) {
		return nil, errors.New("not UTF-8")
	}
	if !json.Valid(line) { // this includes a NUL and anything after the object
		return nil, errors.New("not one JSON object")
	}
	rest := bytes.TrimLeft(line, white)
	if rest[0] != '{' {
		return nil, errors.New("not a JSON object")
	}
	out := make([]member, 0, 5)
	for rest = bytes.TrimLeft(rest[1:], white); rest[0] != '}'; rest = bytes.TrimLeft(rest, white+",") {
		name, after := cutValue(rest)
		var m member
		if err := json.Unmarshal(name, &m.name); err != nil {
			return nil, errors.New("not a JSON object")
		}
		m.raw, rest = cutValue(bytes.TrimLeft(after, white+":"))
		for _, o := range out {
			if o.name == m.name {
				return nil, fmt.Errorf("member %s is given twice", plan.Bytes(head(m.name)).Quote())
			}
		}
		if out = append(out, m); len(out) > 16 {
			return nil, errors.New("too many members")
		}
	}
	return out, nil
}

const white = " \t\r\n"

// cutValue cuts the first value off a line that is valid.
func cutValue(b []byte) (value, rest []byte) {
	depth, quoted := 0, false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			if quoted = !quoted; !quoted && depth == 0 {
				return b[:i+1], b[i+1:]
			}
		case quoted:
		case c == '{' || c == '[':
			depth++
		case depth > 0 && (c == '}' || c == ']'):
			if depth--; depth == 0 {
				return b[:i+1], b[i+1:]
			}
		case depth == 0 && strings.IndexByte(white+",:}", c) >= 0:
			return b[:i], b[i:]
		}
	}
	return b, nil
}

func setBytes(dst *plan.Bytes, raw []byte) error {
	if len(raw) == 0 || raw[0] != '"' {
		return errors.New("want a string")
	}
	if err := dst.UnmarshalJSON(raw); err != nil {
		return errors.New("want a string whose bytes are UTF-8 or \\udc80 to \\udcff")
	}
	if strings.IndexByte(string(*dst), 0) >= 0 {
		return errors.New("contains a NUL")
	}
	return nil
}

// setString reads a word of the protocol: short and ASCII.
func setString(dst *string, raw []byte) error {
	var b plan.Bytes
	if err := setBytes(&b, raw); err != nil {
		return err
	}
	if len(b) > 128 {
		return errors.New("too long")
	}
	for _, c := range []byte(b) {
		if c < 0x20 || c > 0x7e {
			return errors.New("want printable ASCII")
		}
	}
	*dst = string(b)
	return nil
}

func setBool(dst *bool, raw []byte) error {
	if v := string(raw); v != "true" && v != "false" {
		return errors.New("want true or false")
	}
	*dst = raw[0] == 't'
	return nil
}

func setInt(dst *int, raw []byte) error {
	n, ok := number(raw, 7)
	if !ok {
		return errors.New("want a small number")
	}
	*dst = int(n)
	return nil
}

func setLong(dst *int64, raw []byte) error {
	n, ok := number(raw, 18)
	if !ok {
		return errors.New("want a number of at most 18 digits")
	}
	*dst = n
	return nil
}

// number reads digits, of which there may be as many.
func number(raw []byte, most int) (n int64, ok bool) {
	if len(raw) == 0 || len(raw) > most {
		return 0, false
	}
	for _, c := range raw {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, true
}

func setList(dst *[]plan.Bytes, raw []byte, least int) error {
	var list []json.RawMessage
	if len(raw) == 0 || raw[0] != '[' || json.Unmarshal(raw, &list) != nil {
		return errors.New("want a list of strings")
	}
	if len(list) < least {
		return errors.New("want a string at least")
	}
	out := make([]plan.Bytes, len(list))
	for i, r := range list {
		if err := setBytes(&out[i], r); err != nil {
			return err
		}
	}
	*dst = out
	return nil
}
