//go:build linux

package main

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"sbx.example/sbx/shared/mark"
	"sbx.example/sbx/shared/proxied"
)

// The mark of a decoy goes nowhere in a request's method, nor in the names of what is announced behind its body.
func TestMarksElsewhereInTheHead(t *testing.T) {
	const decoy = "ABCDEFGH234567QZ"
	const chunked = " / HTTP/1.1\r\nHost: one.test\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n"
	const end = "\r\n1\r\na\r\n0\r\n"
	for name, x := range map[string]struct {
		request string
		want    int
	}{
		"method":          {decoy + chunked + end + "\r\n", 403},
		"trailer's name":  {"POST" + chunked + "Trailer: X-" + decoy + "\r\n" + end + "\r\n", 403},
		"trailer's value": {"POST" + chunked + "Trailer: X-A\r\n" + end + "X-A: " + decoy + "\r\n\r\n", 200}, // stays here
		"no mark":         {"PUT" + chunked + "Trailer: X-A\r\n" + end + "\r\n", 200},
	} {
		l := newLab(t, func(c *proxied.Config) { c.Marks = []mark.Mark{{Path: "/h/key", Text: decoy}} }, nil)
		c := l.connect("one.test")
		_, _ = io.WriteString(c, x.request)
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil || resp.StatusCode != x.want {
			t.Errorf("%s: %v %v, want %d", name, resp, err, x.want)
		}
		for _, r := range l.servers["one.test"].requests() {
			if all := fmt.Sprint(r.Method, r.Header, r.Trailer); strings.Contains(strings.ToUpper(all), decoy) {
				t.Errorf("%s: %s", name, all)
			}
		}
	}
}
