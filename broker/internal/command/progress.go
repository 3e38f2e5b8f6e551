package command

import (
	"fmt"
	"time"

	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/launch"
	"sbx.example/sbx/broker/internal/quoting"
)

// What a terminal shows besides words: colours, and that something goes on.

// Colours says whether standard output is a terminal with colours, and nobody wants none (no-color.org).
func (t *Term) Colours() bool {
	return launch.IsTerminal(t.Std[1]) && host.Lookup(t.Env, "NO_COLOR") == "" && host.Lookup(t.Env, "TERM") != "dumb"
}

// The colours, by what they say.
const (
	Good = "32"
	Bad  = "31"
	Odd  = "33"
)

// Colour is text in a colour, where there are any.
func (t *Term) Colour(colour, text string) string {
	if !t.Colours() {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[m"
}

// Busy tells a person at a terminal that what takes longer than a second goes on, until done is called, which takes the
// line away.
func (t *Term) Busy(what string) (done func()) {
	if t.json || !launch.IsTerminal(t.Std[2]) {
		return func() {}
	}
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for n := 1; ; n++ {
			select {
			case <-stop:
				if n > 1 && host.Lookup(t.Env, "TERM") != "dumb" {
					_, _ = t.messages().WriteString("\r\x1b[K")
				}
				return
			case <-tick.C:
			}
			switch {
			case host.Lookup(t.Env, "TERM") != "dumb":
				text := quoting.Lines(fmt.Sprintf("sbx: %s ... %d s", what, n))
				if width := columns(t.Std[2]); width > 0 { // what goes on in another row would stay
					text = text[:min(len(text), width-1)]
				}
				_, _ = t.messages().WriteString("\r\x1b[K" + text)
			case n == 1:
				t.Warn(what + " ...")
			}
		}
	}()
	return func() {
		close(stop)
		<-ended
	}
}
