//go:build linux

package main

import (
	"bufio"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"sbx.example/sbx/shared/proxied"
)

// Whatever a program names in a request, its report is short, and says what it is.
func TestReportsAreBounded(t *testing.T) {
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	short := "no model é"
	for text, want := range map[string]string{short: short,
		strings.Repeat("é", 750_000):       strings.Repeat("é", maxText/2) + "...",
		"x" + strings.Repeat("é", 750_000): "x" + strings.Repeat("é", maxText/2-1) + "..."} {
		go (&reports{to: out}).use(proxied.Use{Host: "one.test", Method: text, Refused: text})
		line, err := bufio.NewReaderSize(in, 2<<20).ReadBytes('\n')
		var r proxied.Report
		if err != nil || json.Unmarshal(line, &r) != nil || r.Use.Method != want || r.Use.Refused != want {
			t.Errorf("%d bytes became %d: %.100s", len(text), len(line), line)
		}
	}
}
