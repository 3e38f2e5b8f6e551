//go:build linux

package main

import (
	"net/http"
	"net/textproto"
	"net/url"
	"strings"

	"sbx.example/sbx/proxy/sigv4"
	"sbx.example/sbx/shared/proxied"
)

// put puts the values of secrets into a request, each only where it belongs at this site. used are those that were put
// in.
func (p *proxy) put(site *site, r *http.Request) (used []*secret) {
	for i, at := range site.Places {
		s := p.secret(at.Secret)
		if s.value == "" && s.aws == nil { // a login that nobody has, or that has ended
			continue
		}
		if site.withholds(s, r) != "" { // a login's placeholder was not known when the request was looked at
			continue
		}
		if site.Inject && i == 0 {
			inject(at, s, r)
			used = append(used, s)
			continue
		}
		if place(at, s, r) {
			used = append(used, s)
		}
	}
	return used
}

// strayed are the secrets whose placeholder stands anywhere else of a request's head, where it stays.
func (p *proxy) strayed(r *http.Request) (out []*secret) {
	for _, s := range p.known() {
		if mentions(r, s.Placeholder) || s.Key != "" && mentions(r, s.Key) {
			out = append(out, s)
		}
	}
	return out
}

// inject sets the value, whatever the client has said there.
func inject(at proxied.Place, s *secret, r *http.Request) {
	switch {
	case at.Header != "":
		r.Header.Set(at.Header, strings.ReplaceAll(at.Format, "{}", s.value))
	case at.Basic:
		r.Header.Set("Authorization", basic(at.User, s.value))
	case at.Query != "":
		q := r.URL.Query()
		q.Set(at.Query, s.value)
		r.URL.RawQuery = q.Encode()
	}
}

// carried says whether the placeholder stands in a request where the value belongs.
func carried(at proxied.Place, s *secret, r *http.Request) bool {
	if at.AWS {
		c, ok := sigv4.Read(r)
		return ok && c.ID == s.Placeholder
	}
	u := *r.URL
	return place(at, s, &http.Request{URL: &u, Header: r.Header.Clone()})
}

// Bounds of what a program may write beside a placeholder: a server that shows the beginning of a header would show as
// much of the value as the program lets it.
const (
	maxScheme = 16
	maxUser   = 64
)

// fits says whether a header's value is what the settings say, or a scheme and the placeholder (RFC 9110, 11.4).
func fits(format, placeholder, value string) bool {
	if value == strings.ReplaceAll(format, "{}", placeholder) {
		return true
	}
	scheme, ok := strings.CutSuffix(value, " "+placeholder)
	return ok && len(scheme) <= maxScheme &&
		strings.Trim(strings.ToLower(scheme), "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

// fitsBasic is the same of a user and a password. Where the settings name no user, the token may be either.
func fitsBasic(at proxied.Place, placeholder, user, password string) bool {
	if at.User != "" && !at.AnyUser {
		return user == at.User && password == placeholder
	}
	beside := user
	if user == placeholder {
		beside = password
	}
	return (user == placeholder || password == placeholder) && len(beside) <= maxUser &&
		!strings.Contains(beside, placeholder)
}

// place replaces the placeholder where it belongs, once, and says whether it stood there. In what is there twice a
// server may see both as one.
func place(at proxied.Place, s *secret, r *http.Request) (found bool) {
	switch {
	case at.Header != "":
		list := r.Header[textproto.CanonicalMIMEHeaderKey(at.Header)]
		if found = len(list) == 1 && fits(at.Format, s.Placeholder, list[0]); found {
			list[0] = s.in(list[0])
		}
	case at.Basic:
		list := r.Header["Authorization"]
		if len(list) != 1 {
			return false
		}
		user, password, ok := unbasic(list[0])
		if found = ok && fitsBasic(at, s.Placeholder, user, password); found {
			list[0] = basic(s.in(user), s.in(password))
		}
	case at.Query != "":
		parts := strings.Split(r.URL.RawQuery, "&")
		for i, part := range parts {
			k, v, _ := strings.Cut(part, "=")
			name, err1 := url.QueryUnescape(k)
			value, err2 := url.QueryUnescape(v)
			if !found && err1 == nil && err2 == nil && name == at.Query && value == s.Placeholder {
				parts[i], found = k+"="+url.QueryEscape(s.value), true
			}
		}
		r.URL.RawQuery = strings.Join(parts, "&")
	}
	return found
}

// mentions says whether a placeholder stands in a request's head, also as a part of HTTP's own authentication.
func mentions(r *http.Request, placeholder string) bool {
	if strings.Contains(r.URL.RawQuery, placeholder) || strings.Contains(r.URL.Path, placeholder) {
		return true
	}
	for _, list := range r.Header {
		for _, v := range list {
			if strings.Contains(v, placeholder) {
				return true
			}
			if user, password, ok := unbasic(v); ok && (strings.Contains(user, placeholder) ||
				strings.Contains(password, placeholder)) {
				return true
			}
		}
	}
	return false
}
