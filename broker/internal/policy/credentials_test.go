package policy

import (
	"strings"
	"testing"
)

// What cannot be meant is refused, and named.
func TestCredentialsRefuse(t *testing.T) {
	const credential, endpoint = "[credential.x]\n", "[endpoint.x]\nurl = \"https://a.test\"\n"
	const aws = credential + "hosts = [\"a.test\"]\naws_sigv4 = [\"s3/eu-west-1\"]\n"
	const folder = credential + "login = \"https://a.test/t\"\nlogin_folder = "
	if _, err := ParseConfig([]byte(aws), "/c/config.toml", ScopeUser, Vars{Home: "/home/x"}); err != nil {
		t.Error(err) // the control
	}
	for text, want := range map[string]string{
		credential + `hosts = ["*.a.test"]`:                              "not the name of one server",
		credential + `hosts = ["10.0.0.0/8"]`:                            "not the name of one server",
		credential + `hosts = ["a.test:0"]`:                              "not the name of one server",
		credential + `hosts = ["A.test"]`:                                "not the name of one server",
		credential + `header = "Authorization"`:                          "is not like",
		credential + `header = "A: {}{}"`:                                "is not like",
		credential + `header = "A b: {}"`:                                "is not like",
		credential + `header = "A: {}\r\nB: c"`:                          "is not like",
		credential + "header = \"A: {}\"\nbasic = \"me\"":                "three places",
		credential + `aws_sigv4 = ["s3"]`:                                "aws_sigv4 needs hosts",
		aws + "query = \"key\"":                                          "do not go with it",
		aws + "kind = \"github\"":                                        "do not go with it",
		aws + "env = [\"A\"]":                                            "do not go with it",
		aws + `login = "https://a.test/t"`:                               "do not go with it",
		credential + `aws_sigv4 = ["s3/eu-west-1/x"]`:                    "is not SERVICE or SERVICE/REGION",
		credential + `aws_sigv4 = ["s3/"]`:                               "is not SERVICE or SERVICE/REGION",
		credential + `aws_sigv4 = ["S3"]`:                                "is not SERVICE or SERVICE/REGION",
		credential + `aws_sigv4 = ["*"]`:                                 "is not SERVICE or SERVICE/REGION",
		credential + "from_env = \"A\"\nfrom_command = \"b\"":            "three sources",
		credential + "store = \"purse\"":                                 "keyring",
		credential + "store = \"keyring\"\nfrom_env = \"A\"":             "name one",
		credential + "store = \"keyring\"\nlogin = \"https://a.test/t\"": "sealed in a file",
		credential + `allow = ["GET repos"]`:                             "is not METHOD /PATH",
		credential + `allow = ["GET /a/**/b"]`:                           "** stands at the end",
		credential + `allow = ["GET /a*"]`:                               "* is a whole segment",
		credential + `login = "http://a.test/token"`:                     "is no address like",
		credential + `login = "https://a.test"`:                          "is no address like",
		credential + `login = "https://a.test/token?x"`:                  "is no address like",
		credential + `login = "https://a.test/a b"`:                      "is no address like",
		credential + `login = "https://me@a.test/token"`:                 "is no address like",
		credential + `login = "https://*.test/token"`:                    "is no address like",
		credential + `login_fields = ["a"]`:                              "names no address",
		credential + `login_folder = "A"`:                                "names no address",
		folder + `"A-B"`:                                                 "not the name of a variable",
		credential + "login = \"https://a.test/t\"\nfrom_env = \"A\"":    "do not go with it",
		credential + "login = \"https://a.test/t\"\nbasic = \"me\"":      "do not go with it",
		credential + "login = \"https://a.test/t\"\nenv = [\"A\"]":       "do not go with it",
		credential + `host = ["a.test"]`:                                 "did you mean credential.x.hosts?",
		"[endpoint.x]\ncredential = \"y\"":                               "it needs a url",
		"[endpoint.x]\nurl = \"ftp://a.test\"":                           "is not like",
		"[endpoint.x]\nurl = \"https://me:secret@a.test\"":               "is not like",
		endpoint + `money = "5.00"`:                                      "money needs prices",
		endpoint + "money = \"5.0\"\nprices = {\"*\" = \"1.00/2.00\"}":   "no amount of money",
		endpoint + `prices = {"*" = "1.00"}`:                             `is not like "3.00/15.00"`,
		endpoint + `api = "other"`:                                       "is none of",
	} {
		_, err := ParseConfig([]byte(text), "/c/config.toml", ScopeUser, Vars{Home: "/home/x"})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// A project names no credential and no endpoint, trusted or not: it would say where a secret of the user's goes.
func TestCredentialsOfProjects(t *testing.T) {
	layer := func(scope Scope, host string) *Layer {
		l, err := ParseConfig([]byte("[credential.x]\nhosts = [\""+host+"\"]\n[endpoint.e]\nurl = \"https://"+host+"\"\n"),
			"/"+host, scope, Vars{})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	mine, vars := layer(ScopeUser, "mine.test"), Vars{Home: "/home/x", Project: "/p"}
	for _, trusted := range []bool{false, true} {
		e, err := Merge(Layers{User: mine, Project: layer(ScopeProject, "evil.test"), Trusted: trusted,
			Vars: vars}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if e.Credentials["x"].Hosts[0] != "mine.test" || e.Endpoints["e"].URL != "https://mine.test" ||
			len(e.Notices) != 2 {
			t.Errorf("trusted %v: %+v %+v %v", trusted, e.Credentials, e.Endpoints, e.Notices)
		}
	}
	org := Layers{Org: layer(ScopeOrg, "org.test"), Vars: vars}
	both := org
	both.User = mine
	before, err1 := Merge(org, nil)
	after, err2 := Merge(both, nil)
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	list := Diff(before, after)
	if len(list) != 2 || list[0].Key != "credential.x.hosts" || !list[0].Widens || list[1].Key != "endpoint.e.url" {
		t.Errorf("%+v", list)
	}
	if len(Diff(after, after)) != 0 {
		t.Error("what is the same differs")
	}
}
