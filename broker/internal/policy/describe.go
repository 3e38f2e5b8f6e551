package policy

import (
	"sbx.example/sbx/broker/internal/policy/manual"
)

// Setting text for people: one sentence a key, used by the manual. A test holds that every key has one.

// Description says what a configuration key is.
type Description struct {
	Key    string
	Values string // what it takes, in words
	Help   string
}

// Describe lists every configuration key with what it takes and does.
func Describe() []Description {
	rows := keyTable()
	out := make([]Description, len(rows))
	for i, k := range rows {
		out[i] = Description{Key: k.name, Values: k.values(), Help: manual.Sentence(k.name)}
	}
	return out
}

// values words the type of a key.
func (k *key) values() string {
	switch k.typ {
	case tBool:
		return "true or false"
	case tEnum, tName:
		if len(k.words) > 0 {
			return joinOr(k.words)
		}
		return "a name"
	case tText:
		return "text"
	case tDuration:
		return `a time such as "90s" or "1h30m"`
	case tInt:
		return "a number"
	case tSize:
		return `a size such as "512M", "2G" or "75%" of the memory`
	case tCPU:
		return `a share of one processor such as "150%"`
	case tPath:
		return "a path"
	case tPaths:
		return "a list of paths"
	case tPatterns:
		return "a list of path patterns"
	case tHosts:
		return `a list of hosts such as "github.com", "*.registry.example:443" or "10.0.0.0/8"`
	case tPublish:
		return `a list of "[IP:]HOST:PORT"`
	case tPorts:
		return "a list of ports"
	case tNames:
		return "a list of names"
	case tServers:
		return `a list of hosts such as "api.github.com" or "git.example:8443"`
	case tModels:
		return "a list of names of models"
	case tWords:
		return "a list of words"
	case tArguments:
		return `a list of patterns such as "origin *"`
	case tRequests:
		return `a list of requests such as "GET /repos/**"`
	case tScopes:
		return `a list of services such as "s3/eu-west-1" or "sts"`
	case tGlobs:
		return "a list of names with wildcards"
	case tStores:
		return "a list of PATH, PATH:SOCKET or PATH:SOCKET:PROTOCOL"
	case tMap:
		return "a table of names and values"
	}
	return ""
}

func joinOr(words []string) string {
	s := ""
	for i, w := range words {
		switch {
		case i == 0:
		case i == len(words)-1:
			s += " or "
		default:
			s += ", "
		}
		s += w
	}
	return s
}
