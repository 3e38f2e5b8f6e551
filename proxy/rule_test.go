//go:build linux

package main

import (
	"net/url"
	"testing"
)

// An address names another method however servers read it, and an ordinary one does not.
func TestOverrides(t *testing.T) {
	for query, want := range map[string]string{
		"":                              "",
		"q=_method":                     "",
		"q=a%26_method=DELETE":          "",
		"method=flickr.photos.search":   "",
		"methods=DELETE&the_method=PUT": "",
		"_method=DELETE":                "_method",
		"_method":                       "_method",
		"a&_method=delete":              "_method",
		"a;_Method=x":                   "_method",
		"%5Fmethod=DELETE":              "_method",
		"%5fm%65thod=%44ELETE":          "_method",
		"+_method=DELETE":               "_method",
		".method=DELETE":                "_method",
		"%5Bmethod=DELETE":              "_method",
		"_method[]=DELETE":              "_method",
		"_method%5b0%5d=DELETE":         "_method",
		"X-HTTP-Method-Override=DELETE": "x_http_method_override",
		"$httpMethod=DELETE":            "$httpmethod",
		"%24httpMethod=DELETE":          "$httpmethod",
		"method=delete":                 "method",
		"method=%44ELETE":               "method",
		"a=%zz&_method=DELETE":          "_method",
	} {
		if got := overrides(query); got != want {
			t.Errorf("%q: %q, want %q", query, got, want)
		}
	}
}

func FuzzOverrides(f *testing.F) {
	for _, s := range []string{"", "a=b&_method=PUT", ";;=%", "%5Bmethod[=x", "method=PUT"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, query string) {
		if v, err := url.ParseQuery(query); err == nil && v.Has("_method") && overrides(query) == "" {
			t.Errorf("%q is let through", query)
		}
		if overrides(query+"&_method=DELETE") == "" {
			t.Errorf("%q hides it", query)
		}
	})
}
