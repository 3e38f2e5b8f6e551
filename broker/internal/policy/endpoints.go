package policy

import (
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"strconv"
	"strings"

	"sbx.example/sbx/broker/internal/policy/excerpt"
)

// Endpoint is an address of a model's API that a run can be granted, with bounds: a table [endpoint.NAME].
type Endpoint struct {
	Name       string
	URL        string
	Credential string   // of [credential.NAME]
	API        string   // whose words it speaks: anthropic, openai, gemini; "" is that of the host
	Models     []string // nil: all
	Requests   int      // of a session; 0 is without a bound, here and below
	Tokens     int
	Rate       int    // requests a minute
	Money      string // that tokens may cost: "2.50"
	// Prices are what a million tokens cost, in and out, by model: "3.00/15.00"; a name may end in *
	Prices map[string]string
	Origin Origin
}

// field is where a key of the table goes.
func (e *Endpoint) field(name string) any {
	switch name {
	case "url":
		return &e.URL
	case "credential":
		return &e.Credential
	case "api":
		return &e.API
	case "models":
		return &e.Models
	case "requests":
		return &e.Requests
	case "tokens":
		return &e.Tokens
	case "rate":
		return &e.Rate
	case "money":
		return &e.Money
	}
	return &e.Prices
}

// endpointKeys are the rows of an [endpoint.NAME] table.
func endpointKeys() []key {
	return []key{{name: "url", typ: tText}, {name: "credential", typ: tName},
		{name: "api", typ: tEnum, words: []string{"anthropic", "openai", "gemini"}}, {name: "models", typ: tModels},
		{name: "requests", typ: tInt}, {name: "tokens", typ: tInt}, {name: "rate", typ: tInt},
		{name: "money", typ: tText}, {name: "prices", typ: tMap}}
}

func (p *configParser) endpoints(v any) error {
	p.layer.Endpoints = map[string]Endpoint{}
	return p.tables("endpoint", maxCredentials, v, func(name, full string, line int, table map[string]any) error {
		e := Endpoint{Name: name, Origin: p.origin(line)}
		if err := p.named(full, table, endpointKeys(), into(e.field)); err != nil {
			return err
		}
		if err := e.check(); err != nil {
			return p.errAt(line, "%s: %v", full, err)
		}
		p.layer.Endpoints[name] = e
		return nil
	})
}

// check says what is wrong with an endpoint as a whole.
func (e *Endpoint) check() error {
	u, err := e.Parse()
	switch {
	case e.URL == "":
		return errors.New("it needs a url")
	case err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" || u.User != nil ||
		u.RawQuery != "" || u.Fragment != "":
		return fmt.Errorf("%s is not like \"https://api.example/v1\"", excerpt.Quote(e.URL))
	case e.Money != "" && len(e.Prices) == 0:
		return errors.New("money needs prices")
	}
	if _, err := Cents(e.Money); e.Money != "" && err != nil {
		return err
	}
	for model, price := range e.Prices {
		in, out, _ := strings.Cut(price, "/")
		_, err1 := Cents(in)
		if _, err2 := Cents(out); err1 != nil || err2 != nil {
			return fmt.Errorf("the price of %s is not like \"3.00/15.00\"", excerpt.Quote(model))
		}
	}
	return nil
}

// Parse reads the address.
func (e *Endpoint) Parse() (*url.URL, error) { return url.Parse(e.URL) }

// Cents reads an amount of money such as "2.50".
func Cents(s string) (int64, error) {
	whole, part, has := strings.Cut(s, ".")
	n, err := strconv.ParseUint(whole+(part + "00")[:2], 10, 40)
	if err != nil || has && len(part) != 2 || whole == "" {
		return 0, fmt.Errorf("%s is no amount of money such as \"2.50\"", excerpt.Quote(s))
	}
	return int64(n), nil
}

// diffNamed lists what is not the same in two tables of one name.
func diffNamed(full string, rows []key, before, after func(string) any, origin Origin) (out []Change) {
	for _, k := range rows {
		old := reflect.ValueOf(before(k.name)).Elem().Interface()
		now := reflect.ValueOf(after(k.name)).Elem().Interface()
		if !reflect.DeepEqual(old, now) {
			out = append(out, Change{Key: full + "." + k.name, Old: Show(old), New: Show(now), Origin: origin, Widens: true})
		}
	}
	return out
}

// diffCredentials lists the credentials and endpoints that are not the same. Any change may widen.
func diffCredentials(a, b Effective) (out []Change) {
	for _, name := range bothKeys(a.Credentials, b.Credentials) {
		before, after := a.Credentials[name], b.Credentials[name]
		out = append(out, diffNamed("credential."+name, credentialKeys(), before.field, after.field, after.Origin)...)
	}
	for _, name := range bothKeys(a.Endpoints, b.Endpoints) {
		before, after := a.Endpoints[name], b.Endpoints[name]
		out = append(out, diffNamed("endpoint."+name, endpointKeys(), before.field, after.field, after.Origin)...)
	}
	return out
}
