//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"os"
	"strings"
)

type verdict string

const (
	absent  verdict = "" // not run on that side
	passed  verdict = "pass"
	skipped verdict = "skip"
	failed  verdict = "fail"
)

func (v verdict) String() string {
	if v == absent {
		return "absent"
	}
	return string(v)
}

// result is what one test came to, and what it said about that.
type result struct {
	verdict verdict
	why     string
	seconds float64
}

type results map[string]result

func readResults(file string) (results, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading results: %w", err)
	}
	read := readGo
	if bytes.HasPrefix(bytes.TrimSpace(text), []byte("<")) {
		read = readJUnit
	}
	r, err := read(text)
	if err == nil && len(r) == 0 {
		err = fmt.Errorf("there is no result in it")
	}
	if err != nil {
		return nil, fmt.Errorf("reading results of %s: %w", file, err)
	}
	return r, nil
}

// readGo reads test2json's stream.
func readGo(text []byte) (results, error) {
	r, said := results{}, map[string]string{}
	for line := range bytes.Lines(text) {
		var e struct {
			Action, Package, Test, Output string
			Elapsed                       float64
		}
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, fmt.Errorf("%q is no line of go test -json: %w", line, err)
		}
		if e.Test == "" {
			continue
		}
		name := e.Package + "." + e.Test
		switch v := verdict(e.Action); v {
		case passed, skipped, failed:
			r[name] = result{v, lastLine(said[name]), e.Elapsed}
		case "output":
			if text := strings.TrimSpace(e.Output); !strings.HasPrefix(text, "--- ") && !strings.HasPrefix(text, "=== ") {
				said[name] += e.Output
			}
		}
	}
	return r, nil
}

type testcase struct {
	Name    string  `xml:"name,attr"`
	Seconds float64 `xml:"time,attr"`
	Skipped *string `xml:"skipped"`
	Failure *fault  `xml:"failure"`
	Error   *fault  `xml:"error"`
}

type fault struct {
	Message string `xml:"message,attr"`
}

// readJUnit reads what Python's regrtest writes. A test of which only subtests failed has no name there: it is absent.
func readJUnit(text []byte) (results, error) {
	var doc struct {
		Cases []testcase `xml:"testsuite>testcase"`
	}
	if err := xml.Unmarshal(text, &doc); err != nil {
		return nil, err
	}
	r := results{}
	for _, c := range doc.Cases {
		if c.Name == "" {
			continue
		}
		t := result{verdict: passed, seconds: c.Seconds}
		for _, f := range []*fault{c.Failure, c.Error} {
			if f != nil {
				t.verdict, t.why = failed, lastLine(f.Message)
			}
		}
		if c.Skipped != nil {
			t.verdict, t.why = skipped, lastLine(*c.Skipped)
		}
		if old, ok := r[c.Name]; !ok || old.verdict != failed { // a class may run twice, in two modules
			r[c.Name] = t
		}
	}
	return r, nil
}

func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:])
}
