package program

// Limited keeps the first Left bytes of what a program says, and goes on reading, so that the program never waits for a
// reader. It has no other method that writes: io.Copy would use ReadFrom past the limit. It may be looked at when the
// program has ended (os/exec.Cmd.Wait).
type Limited struct {
	Left int
	Over bool // there was more
	kept []byte
}

func (l *Limited) Write(b []byte) (int, error) {
	n := min(len(b), l.Left)
	l.Left -= n
	l.Over = l.Over || n < len(b)
	l.kept = append(l.kept, b[:n]...)
	return len(b), nil
}

func (l *Limited) String() string { return string(l.kept) }
