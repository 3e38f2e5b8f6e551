// Package sigv4 reads, verifies and makes signatures of AWS's version 4 (AWS4-HMAC-SHA256), in a header or in an
// address, and those of a body's chunks. It must know no credential, site or grant, and hold no more of a body than one
// chunk. sbx-proxy verifies with it what a program inside has signed with a placeholder, and signs that anew.
//
// A library for clients does not do: it chooses the signed headers and the time itself, and verifies nothing.
package sigv4

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
)

const (
	algorithm = "AWS4-HMAC-SHA256"
	ending    = "aws4_request" // of every scope
)

// Key is an access key, with the token of the session that it was issued for, if there is one.
type Key struct{ ID, Secret, Token string }

// Claim is what a request says of its own signature.
type Claim struct {
	ID                    string
	Date, Region, Service string   // the scope
	Time                  string   // 20130524T000000Z
	Signed                []string // names of headers, in small letters
	Signature             string
	presigned             bool // it stands in the address
}

// Names of what carries a signature.
const (
	authorization = "Authorization"
	timeHeader    = "X-Amz-Date"
	tokenHeader   = "X-Amz-Security-Token"
	payloadHeader = "X-Amz-Content-Sha256"

	queryAlgorithm = "X-Amz-Algorithm"
	queryID        = "X-Amz-Credential"
	querySigned    = "X-Amz-SignedHeaders"
	querySignature = "X-Amz-Signature"
)

// Read finds the claim of a request. One that is there twice, or not whole, is none: servers disagree on what it means.
func Read(r *http.Request) (*Claim, bool) {
	c, ok := &Claim{}, false
	switch list := r.Header[authorization]; {
	case len(list) == 1:
		ok = c.header(list[0], r.Header[timeHeader])
	case len(list) == 0:
		ok = c.query(r.URL.RawQuery)
	}
	if !ok || !c.whole() || presignedToo(c, r) {
		return nil, false
	}
	return c, true
}

// presignedToo says whether the address of a request that is signed in a header is signed as well.
func presignedToo(c *Claim, r *http.Request) bool {
	return !c.presigned && len(values(pairs(r.URL.RawQuery), querySignature)) > 0
}

// header reads "AWS4-HMAC-SHA256 Credential=ID/DATE/REGION/SERVICE/aws4_request, SignedHeaders=a;b, Signature=HEX".
func (c *Claim) header(text string, when []string) bool {
	scheme, rest, _ := strings.Cut(text, " ")
	if scheme != algorithm || len(when) != 1 {
		return false
	}
	parts := strings.Split(rest, ",")
	if len(parts) != 3 {
		return false
	}
	said := map[string]string{}
	for _, part := range parts {
		k, v, _ := strings.Cut(strings.Trim(part, " \t"), "=")
		said[k] = v
	}
	c.Time = when[0]
	return c.take(said["Credential"], said["SignedHeaders"], said["Signature"])
}

// query reads a signature in an address.
func (c *Claim) query(raw string) bool {
	list := pairs(raw)
	one := func(name string) string {
		if v := values(list, name); len(v) == 1 {
			return v[0]
		}
		return ""
	}
	if one(queryAlgorithm) != algorithm {
		return false
	}
	c.presigned, c.Time = true, one(timeHeader)
	return c.take(one(queryID), one(querySigned), one(querySignature))
}

func (c *Claim) take(id, signed, signature string) bool {
	scope := strings.Split(id, "/")
	if len(scope) != 5 || scope[4] != ending {
		return false
	}
	c.ID, c.Date, c.Region, c.Service = scope[0], scope[1], scope[2], scope[3]
	c.Signed, c.Signature = strings.Split(signed, ";"), signature
	return true
}

// whole says whether nothing is missing of a claim. A signature that does not name its host could be sent to another.
func (c *Claim) whole() bool {
	const when = "20130524T000000Z"
	sorted := slices.Clone(c.Signed)
	slices.Sort(sorted)
	return c.ID != "" && c.Region != "" && c.Service != "" && len(c.Time) == len(when) &&
		len(c.Date) == 8 && strings.HasPrefix(c.Time, c.Date+"T") && isHash(c.Signature) &&
		slices.Contains(c.Signed, "host") && len(slices.Compact(sorted)) == len(c.Signed) &&
		!slices.ContainsFunc(c.Signed, func(s string) bool {
			return s == "" || strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-_") != ""
		})
}

// scope is what a signature holds for.
func (c *Claim) scope() string { return c.Date + "/" + c.Region + "/" + c.Service + "/" + ending }

// isHash says whether a text is a SHA-256 in small hexadecimal letters.
func isHash(s string) bool { return len(s) == 64 && strings.Trim(s, "0123456789abcdef") == "" }

// pair is one parameter of an address, as it is written and as it is meant.
type pair struct{ raw, name, value string }

func pairs(raw string) (list []pair) {
	for part := range strings.SplitSeq(raw, "&") {
		k, v, _ := strings.Cut(part, "=")
		name, err1 := url.QueryUnescape(k)
		value, err2 := url.QueryUnescape(v)
		if err1 != nil || err2 != nil {
			name, value = k, v // it is no parameter of ours
		}
		if part != "" {
			list = append(list, pair{part, name, value})
		}
	}
	return list
}

func values(list []pair, name string) (out []string) {
	for _, p := range list {
		if p.name == name {
			out = append(out, p.value)
		}
	}
	return out
}
