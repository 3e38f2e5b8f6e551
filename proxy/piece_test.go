//go:build linux

package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// A program that asks for parts of an answer gets those of the covered one: it cannot have the value cut so that nobody
// knows it.
func TestNothingComesBackInPieces(t *testing.T) {
	l := newLab(t, nil, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		w.Header().Set("Content-Digest", "sha-256=:of the part:")
		said := "you said " + r.Header.Get("Authorization") + ", and that was all"
		http.ServeContent(w, r, "", time.Time{}, strings.NewReader(said))
	})
	c := l.client(true)
	get := func(what string) (int, http.Header, string) {
		head := map[string]string{"Authorization": "Bearer " + ghost}
		if what != "" {
			head["Range"] = what
		}
		return l.do(c, "GET", "https://one.test/", head, nil)
	}
	_, _, whole := get("")
	if strings.Contains(whole, real) || !strings.HasPrefix(whole, "you said Bearer sbx-hidden") {
		t.Fatalf("%q", whole)
	}
	n := len(whole)
	for size := range 9 {
		var all strings.Builder
		for at := 0; at < n; at += size + 1 {
			last := min(at+size, n-1)
			status, h, text := get(fmt.Sprintf("bytes=%d-%d", at, at+size))
			all.WriteString(text)
			if want := fmt.Sprintf("bytes %d-%d/%d", at, last, n); status != 206 || h.Get("Content-Range") != want ||
				h.Get("Content-Digest") != "" {
				t.Errorf("%d %v, want %s", status, h, want)
			}
		}
		if all.String() != whole {
			t.Errorf("in pieces of %d it is %q, want %q", size+1, all.String(), whole)
		}
	}
	for what, want := range map[string]string{
		"bytes=-7":                   "206 " + whole[n-7:],
		"bytes=-10000":               "206 " + whole,
		"bytes=20-":                  "206 " + whole[20:],
		"bytes=0-3,20-25":            "200 " + whole,
		"bytes=20-25,0-0":            "200 " + whole,
		"bytes=4-2":                  "200 " + whole,
		"bytes=x":                    "200 " + whole,
		"lines=1-2":                  "200 " + whole,
		"bytes=99999-":               "416 invalid range: failed to overlap\n",
		fmt.Sprint("bytes=", n, "-"): "416 ",
	} {
		status, h, text := get(what)
		if got := fmt.Sprintf("%d %s", status, text); got != want {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
		if at := h.Get("Content-Range"); status == 416 && at != fmt.Sprintf("bytes */%d", n) {
			t.Errorf("%s: %s", what, at)
		}
	}
}

// Nor by another header about ranges. Those that are about something else, or are understood, go on.
func TestOtherRangesAreNotAskedFor(t *testing.T) {
	l := newLab(t, nil, nil)
	ask := func(names ...string) http.Header {
		head := map[string]string{"Authorization": "Bearer " + ghost}
		for _, name := range names {
			head[name] = "bytes=30-39"
		}
		l.do(l.client(false), "GET", "https://one.test/", head, nil)
		seen := l.servers["one.test"].requests()
		return seen[len(seen)-1].Header
	}
	for _, name := range []string{"Request-Range", "X_Range", "x-byte-range", "X-ByteRanges", "Range-Unit", "X_Ms_Range"} {
		if h := ask(name); h.Get(name) != "" || h[name] != nil {
			t.Errorf("%s goes on: %v", name, h)
		}
	}
	for _, name := range []string{"X-Orange", "Content-Range", "X-Content-Range", "X-Amz-Copy-Source-Range",
		"X-Ms-Source-Range"} {
		if h := ask(name); h.Get(name) != "bytes=30-39" {
			t.Errorf("%s does not go on: %v", name, h)
		}
	}
	wide := ask("Range").Get("Range")
	for _, h := range []http.Header{ask("X-Ms-Range"), ask("X-Ms-Range", "Range")} {
		if wide == "bytes=30-39" || h.Get("Range") != wide || h["X-Ms-Range"] != nil {
			t.Errorf("X-Ms-Range became %v, want Range: %s", h, wide)
		}
	}
}

// A server that sends another part than it was asked for is not let in.
func TestAnotherPieceIsRefused(t *testing.T) {
	for _, at := range []string{"bytes 9-20/90", "bytes 0-20/*", "bytes 20-9/90", "", "bytes */90", "lines 0-3/90"} {
		l := newLab(t, nil, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Range", at)
			w.WriteHeader(http.StatusPartialContent)
			fmt.Fprint(w, real[5:])
		})
		for what, ok := range map[string]bool{"bytes=60-70": false, "bytes=-3": false, "bytes=5-7": at == "bytes 0-20/*"} {
			head := map[string]string{"Authorization": "Bearer " + ghost, "Range": what}
			status, _, text := l.do(l.client(false), "GET", "https://one.test/", head, nil)
			if want := 502; !ok && (status != want || !strings.Contains(text, errPiece.Error())) || ok && status != 206 {
				t.Errorf("%q for %s: %d %q", at, what, status, text)
			}
		}
	}
}
