//go:build linux

package main

import (
	"net/http"
	"strings"
	"testing"

	"sbx.example/sbx/shared/proxied"
)

// A program cannot choose where in a header the value stands, nor have it there twice: what is not as the settings say
// stays a placeholder, and is known for one.
func TestPlacesAreExact(t *testing.T) {
	bearer := proxied.Place{Header: "Authorization", Format: "Bearer {}"}
	key := proxied.Place{Header: "X-Api-Key", Format: "{}"}
	named := proxied.Place{Basic: true, User: "me"}
	anyone := proxied.Place{Basic: true, User: "me", AnyUser: true}
	query := proxied.Place{Query: "key"}
	long := strings.Repeat("p", maxUser+1)
	for name, x := range map[string]struct {
		at    proxied.Place
		sent  []string
		query string
		want  bool
	}{
		"the format":             {bearer, []string{"Bearer " + ghost}, "", true},
		"another scheme":         {bearer, []string{"token " + ghost}, "", true},
		"the value alone":        {key, []string{ghost}, "", true},
		"a named user":           {named, []string{basic("me", ghost)}, "", true},
		"another user":           {anyone, []string{basic("you", ghost)}, "", true},
		"as the user":            {anyone, []string{basic(ghost, "x-oauth-basic")}, "", true},
		"a parameter":            {query, nil, "a=b&key=" + ghost, true},
		"padded":                 {bearer, []string{long + ghost}, "", false},
		"a padded scheme":        {bearer, []string{long + " " + ghost}, "", false},
		"no scheme":              {bearer, []string{"p=\"p\" " + ghost}, "", false},
		"more behind it":         {bearer, []string{"Bearer " + ghost + " x"}, "", false},
		"twice in one":           {bearer, []string{"Bearer " + ghost + ", Bearer " + ghost}, "", false},
		"twice":                  {bearer, []string{"Bearer " + ghost, "Bearer " + ghost}, "", false},
		"not named":              {named, []string{basic("you", ghost)}, "", false},
		"as the user, one named": {named, []string{basic(ghost, "me")}, "", false},
		"a padded user":          {anyone, []string{basic(long, ghost)}, "", false},
		"a padded password":      {anyone, []string{basic(ghost, long)}, "", false},
		"both":                   {anyone, []string{basic(ghost, ghost)}, "", false},
		"a part of the password": {anyone, []string{basic("me", "p"+ghost)}, "", false},
	} {
		r, _ := http.NewRequest("GET", "https://one.test/?"+x.query, nil)
		header := "Authorization"
		if x.at.Header != "" {
			header = x.at.Header
		}
		for _, v := range x.sent {
			r.Header.Add(header, v)
		}
		s := &secret{Secret: proxied.Secret{Placeholder: ghost}, value: real}
		found := place(x.at, s, r)
		if found != x.want || mentions(r, ghost) == x.want || x.at.Query == "" && mentions(r, real) != x.want {
			t.Errorf("%s: put in %v: %v %s", name, found, r.Header, r.URL.RawQuery)
		}
	}
	r, _ := http.NewRequest("GET", "https://one.test/?key="+ghost+"&key="+ghost, nil)
	if s := (&secret{Secret: proxied.Secret{Placeholder: ghost}, value: real}); !place(query, s, r) ||
		strings.Count(r.URL.RawQuery, "REAL") != 1 || !mentions(r, ghost) {
		t.Errorf("a parameter that is there twice: %s", r.URL.RawQuery)
	}
}
