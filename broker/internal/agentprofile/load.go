package agentprofile

import (
	"bytes"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/policy/excerpt"
	"sbx.example/sbx/broker/internal/policy/nearest"
	"sbx.example/sbx/broker/internal/policy/ownfile"
)

// Folder is where profiles lie beside the files of a person and of the organisation.
const Folder = "agents"

// place is where profiles are read from, and how a file there is opened.
type place struct {
	dir  string
	open func(dir, name string) (*os.File, error)
}

// places are the person's folder and the organisation's: the first that has a profile counts, and what comes with sbx
// comes last. A project has none.
func places(src policy.Sources) (out []place) {
	if src.UserDir != "" {
		out = append(out, place{src.UserDir + "/" + Folder, func(dir, name string) (*os.File, error) {
			return ownfile.User(dir, name, src.UID)
		}})
	}
	if src.OrgDir != "" {
		out = append(out, place{src.OrgDir + "/" + Folder, func(dir, name string) (*os.File, error) {
			return ownfile.Org(dir, name, src.OrgUID)
		}})
	}
	return out
}

// Names lists the profiles that there are.
func Names(src policy.Sources) []string {
	out := BuiltIn()
	for _, p := range places(src) {
		files, _ := filepath.Glob(p.dir + "/*.toml")
		for _, f := range files {
			if name := strings.TrimSuffix(path.Base(f), ".toml"); ValidName(name) == nil {
				out = append(out, name)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Load reads the profile of that name.
func Load(name string, src policy.Sources) (*Profile, error) {
	if err := ValidName(name); err != nil {
		return nil, err
	}
	file, text, err := read(name, src)
	if err != nil {
		return nil, err
	}
	if text != nil {
		return Parse(name, file, text)
	}
	names := Names(src)
	if p, err := Of(name, src); err == nil && p != nil {
		return nil, fmt.Errorf("no agent is called %s; did you mean %s, whose program that is?", excerpt.Quote(name), p.Name)
	}
	if n := nearest.Name(name, names); n != "" {
		return nil, fmt.Errorf("no agent is called %s; did you mean %s?", excerpt.Quote(name), n)
	}
	return nil, fmt.Errorf("no agent is called %s; there are %s", excerpt.Quote(name), strings.Join(names, ", "))
}

// read is the text of the profile of that name, nil if there is none, and its file, "" if it is built in.
func read(name string, src policy.Sources) (file string, text []byte, err error) {
	for _, p := range places(src) {
		file := p.dir + "/" + name + ".toml"
		f, err := p.open(p.dir, name+".toml")
		if err == nil && f == nil {
			continue
		}
		if err == nil {
			text, err = ownfile.Read(f)
		}
		if err != nil {
			return file, nil, fmt.Errorf("loading %s: %w", excerpt.Quote(file), err)
		}
		return file, text, nil
	}
	text, _ = Text(name)
	return "", text, nil
}

// Naming are the profiles that can have to do with programs of these names. Only those are parsed, because that takes a
// millisecond for all; one that cannot be read is left out.
func Naming(programs []string, src policy.Sources) (out []*Profile) {
	for _, name := range Names(src) {
		file, text, err := read(name, src)
		says := func(p string) bool {
			return bytes.Contains(text, []byte(`"`+p+`"`)) || bytes.Contains(text, []byte("'"+p+"'"))
		}
		if err != nil || !slices.ContainsFunc(programs, says) {
			continue
		}
		if p, err := Parse(name, file, text); err == nil {
			out = append(out, p)
		}
	}
	return out
}

// Of finds the profile whose agent has a program of that name; nil for none. A file that cannot be read is an error,
// because it could be the one.
func Of(program string, src policy.Sources) (*Profile, error) {
	for _, name := range Names(src) {
		p, err := Load(name, src)
		if err != nil {
			return nil, err
		}
		if slices.Contains(p.Programs, program) {
			return p, nil
		}
	}
	return nil, nil
}
