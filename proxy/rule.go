//go:build linux

package main

import (
	"net/http"
	"net/url"
	"strings"
)

// permits says whether one of a site's rules allows a request, and else why not. No rules allow everything. A path that
// servers read in more than one way matches no rule.
func permits(rules []string, r *http.Request) (ok bool, why string) {
	if rules == nil {
		return true, ""
	}
	if why := ambiguous(r); why != "" {
		return false, why
	}
	for _, rule := range rules {
		method, pattern, _ := strings.Cut(rule, " ")
		if (method == r.Method || method == "*") && matchPath(strings.Split(pattern, "/"), strings.Split(r.URL.Path, "/")) {
			return true, ""
		}
	}
	return false, "no rule allows " + r.Method + " " + r.URL.Path
}

// ambiguous says why a server may take a request for another one; "" if none does.
func ambiguous(r *http.Request) string {
	for _, name := range [...]string{"X-Http-Method-Override", "X-Http-Method", "X-Method-Override"} {
		if r.Header.Get(name) != "" {
			return name + " names another method"
		}
	}
	return ambiguousPath(r)
}

// ambiguousPath is the same of the path alone.
func ambiguousPath(r *http.Request) string {
	for _, name := range [...]string{"X-Original-Url", "X-Rewrite-Url", "X-Override-Url"} {
		if r.Header.Get(name) != "" {
			return name + " names another path"
		}
	}
	if !plainPath(r.URL) {
		return "its path can be read in more than one way"
	}
	return ""
}

// plainPath says whether a path means the same to everybody: no segment of dots, none that is empty but the last, and
// nothing encoded that would separate.
func plainPath(u *url.URL) bool {
	encoded := strings.ToLower(u.EscapedPath())
	if !strings.HasPrefix(u.Path, "/") || strings.Contains(encoded, "%2f") || strings.Contains(encoded, "%5c") ||
		strings.Contains(encoded, "%25") || strings.ContainsAny(u.Path, "\\\x00;") {
		return false
	}
	list := strings.Split(u.Path[1:], "/")
	for i, s := range list {
		if s == "." || s == ".." || s == "" && i < len(list)-1 {
			return false
		}
	}
	return true
}

// matchPath matches segment by segment: * is any one, and at the end ** is all that follow a slash.
func matchPath(pattern, p []string) bool {
	for i, want := range pattern {
		switch {
		case i >= len(p):
			return false
		case want == "**" && i == len(pattern)-1:
			return true
		case want != "*" && want != p[i] || want == "*" && p[i] == "":
			return false
		}
	}
	return len(p) == len(pattern)
}
