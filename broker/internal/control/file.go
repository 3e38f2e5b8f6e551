package control

import (
	"sbx.example/sbx/broker/internal/files"
)

// fileMember is what reads a member of a cmd.file, nil where it is none.
func (c *Command) fileMember(name string) func([]byte) error {
	q := &c.File
	switch name {
	case "op":
		return func(raw []byte) error { return setString(&q.Op, raw) }
	case "path":
		return func(raw []byte) error { return setBytes(&q.Path, raw) }
	case "root":
		return func(raw []byte) error { return setBytes(&q.Root, raw) }
	case "pattern":
		return func(raw []byte) error { return setBytes(&q.Pattern, raw) }
	case "offset":
		return func(raw []byte) error { return setLong(&q.Offset, raw) }
	case "limit":
		return func(raw []byte) error { return setLong(&q.Limit, raw) }
	case "depth":
		return func(raw []byte) error { return setInt(&q.Depth, raw) }
	case "parents":
		return func(raw []byte) error { return setBool(&q.Parents, raw) }
	case "inplace":
		return func(raw []byte) error { return setBool(&q.InPlace, raw) }
	}
	return nil
}

// fileLine asks for an operation on files.
func fileLine(q *files.Request, tag int) []byte {
	o := message("cmd.file").str("op", q.Op).str("path", string(q.Path)).opt("root", string(q.Root)).
		opt("pattern", string(q.Pattern)).flag("parents", q.Parents).flag("inplace", q.InPlace).num("fds", 3)
	for _, n := range [...]struct {
		name string
		n    int64
	}{{"offset", q.Offset}, {"limit", q.Limit}, {"depth", int64(q.Depth)}, {"tag", int64(tag)}} {
		if n.n != 0 {
			o.num(n.name, n.n)
		}
	}
	return o.line()
}
