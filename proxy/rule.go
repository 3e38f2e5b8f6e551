//go:build linux

package main

import (
	"net/http"
	"net/url"
	"strings"
)

// unallowed says why the rules of credentials do not let a request through; "" if they do. Each credential that it
// carries has to allow it. Where it carries none, one of those that go to the server has to.
func (s *site) unallowed(r *http.Request) (why string) {
	carries := false
	for i, at := range s.Places {
		k := s.p.secret(at.Secret)
		if s.Inject && i == 0 || carried(at, k, r) {
			if why = s.withholds(k, r); why != "" {
				return why
			}
			carries = true
		}
	}
	if carries || s.loginAt(r) != nil {
		return ""
	}
	list := make([]string, 0, len(s.Places)+len(s.Logins))
	for _, at := range s.Places {
		list = append(list, at.Secret)
	}
	for _, at := range s.Logins {
		list = append(list, at.Secret)
	}
	for _, name := range list {
		if why = s.withholds(s.p.secret(name), r); why == "" {
			return ""
		}
	}
	return why
}

// withholds says why a credential's own rules have its value not put into a request; "" if they have not. The token
// endpoint of a login is always asked.
func (s *site) withholds(k *secret, r *http.Request) (why string) {
	if l := s.loginAt(r); l != nil && l.Name == k.Name {
		return ""
	}
	_, why = permits(k.Allow, r)
	return why
}

// permits says whether one of a credential's rules allows a request, and else why not. No rules allow everything. A
// path that servers read in more than one way matches no rule.
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
	if name := header(r, "X-Http-Method-Override", "X-Http-Method", "X-Method-Override"); name != "" {
		return name + " names another method"
	}
	if name := overrides(r.URL.RawQuery); name != "" {
		return "the parameter " + name + " names another method"
	}
	return ambiguousPath(r)
}

// ambiguousPath is the same of the path alone.
func ambiguousPath(r *http.Request) string {
	if name := header(r, "X-Original-Url", "X-Rewrite-Url", "X-Override-Url"); name != "" {
		return name + " names another path"
	}
	if !plainPath(r.URL) {
		return "its path can be read in more than one way"
	}
	return ""
}

// header is the first of these that a request has. To servers behind CGI (RFC 3875, 4.1.18) X_A is X-A.
func header(r *http.Request, names ...string) string {
	for _, name := range names {
		for sent, values := range r.Header {
			if strings.EqualFold(strings.ReplaceAll(sent, "_", "-"), name) && strings.Join(values, "") != "" {
				return name
			}
		}
	}
	return ""
}

// overrides is the parameter of an address by which frameworks take another method than that of the request; "": none.
// Servers disagree about what separates parameters, and PHP about what their names are.
func overrides(query string) string {
	for _, pair := range strings.FieldsFunc(query, func(c rune) bool { return c == '&' || c == ';' }) {
		name, value, _ := strings.Cut(pair, "=")
		switch name = parameter(name); name {
		case "_method", "x_http_method_override", "x_http_method", "x_method_override", "$httpmethod":
			return name
		case "method", "http_method", "httpmethod": // what else it may mean is no method
			if isMethod(unescaped(value)) {
				return name
			}
		}
	}
	return ""
}

// parameter is the name of a parameter as the most lenient server reads it: PHP drops spaces before it, takes four
// characters for an underscore, and what is in brackets for an index.
func parameter(name string) string {
	name = strings.TrimLeft(unescaped(name), " ")
	if i := strings.IndexByte(name, '['); i > 0 {
		name = name[:i]
	}
	return strings.NewReplacer(" ", "_", ".", "_", "[", "_", "-", "_").Replace(strings.ToLower(name))
}

func unescaped(text string) string {
	if out, err := url.QueryUnescape(text); err == nil {
		return out
	}
	return text
}

func isMethod(text string) bool {
	switch strings.ToUpper(strings.TrimSpace(text)) {
	case "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "LINK", "UNLINK", "COPY", "MOVE", "PURGE":
		return true
	}
	return false
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
