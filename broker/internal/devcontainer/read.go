package devcontainer

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/tailscale/hujson"

	"sbx.example/sbx/broker/internal/quoting"
)

// File is what of a devcontainer.json is carried out.
type File struct {
	Image           string
	Build           Build
	WorkspaceFolder string // inside; "": Place.Folder
	ContainerUser   string
	RemoteUser      string
	ContainerEnv    map[string]string
	RemoteEnv       map[string]*string // nil: the variable is unset
	Mounts          []Mount
	Init            bool

	OnCreate, UpdateContent, PostCreate []Step // once
	PostStart, PostAttach               []Step // at each start
}

func (f *File) once() []Step { return slices.Concat(f.OnCreate, f.UpdateContent, f.PostCreate) }
func (f *File) each() []Step { return slices.Concat(f.PostStart, f.PostAttach) }

// Build is how its image is made. Names are relative to the file's own directory.
type Build struct {
	Dockerfile, Context, Target string
	Args                        map[string]string
	CacheFrom                   []string
}

// Mount is a volume of the engine's.
type Mount struct{ Volume, Target string }

// Step is a command: a line for a shell, or the words of one program.
type Step struct {
	Line  string
	Words []string
}

// Refused is what a file asks for and does not get.
type Refused struct{ Key, Why string }

// MaxFile bounds what is read of a project's file, in bytes.
const MaxFile = 1 << 20

// Read reads a file: JSON with comments and trailing commas. refused is in the order of the keys' names.
func Read(text []byte) (f *File, refused []Refused, _ error) {
	if len(text) > MaxFile {
		return nil, nil, fmt.Errorf("it is longer than %d bytes", MaxFile)
	}
	plain, err := hujson.Standardize(slices.Clone(text))
	if err != nil {
		return nil, nil, errors.New("it is not JSON with comments: " + err.Error())
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(plain, &object); err != nil || object == nil {
		return nil, nil, errors.New("it is no JSON object")
	}
	if _, ok := object["dockerComposeFile"]; ok {
		return nil, nil, errors.New("dockerComposeFile: compose is not supported: name an image or a build")
	}
	f = &File{}
	known := f.keys()
	for _, name := range slices.Sorted(maps.Keys(object)) {
		take, ok := known[name]
		switch why := refusedKeys()[name]; {
		case why != "":
			if asks(object[name]) {
				refused = append(refused, Refused{name, why})
			}
		case ok:
			more, err := take(object[name])
			if err != nil {
				return nil, nil, fmt.Errorf("%s: %w", quoting.Quote(name), err)
			}
			for _, why := range more {
				refused = append(refused, Refused{name, why})
			}
		case !slices.Contains(editors(), name):
			refused = append(refused, Refused{name, "sbx does not know it"})
		}
	}
	return f, refused, f.check()
}

// check says what is wrong with a file as a whole.
func (f *File) check() error {
	switch {
	case f.Image == "" && f.Build.Dockerfile == "":
		return errors.New("it names neither an image nor a build.dockerfile")
	case f.Image != "" && f.Build.Dockerfile != "":
		return errors.New("it names both an image and a build.dockerfile")
	}
	for _, name := range []string{f.Image, f.ContainerUser, f.RemoteUser, f.Build.Target} {
		if strings.HasPrefix(name, "-") || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
			return fmt.Errorf("%s is no name", quoting.Quote(name))
		}
	}
	names := slices.Concat(slices.Collect(maps.Keys(f.ContainerEnv)), slices.Collect(maps.Keys(f.RemoteEnv)))
	plain := regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)
	for _, name := range names {
		if !plain.MatchString(name) {
			return fmt.Errorf("%s is no name of a variable", quoting.Quote(name))
		}
	}
	return nil
}

// keys are what is carried out, each with how it is read.
func (f *File) keys() map[string]func(json.RawMessage) ([]string, error) {
	return map[string]func(json.RawMessage) ([]string, error){
		"image":                into(&f.Image),
		"dockerFile":           into(&f.Build.Dockerfile), // the older names of build
		"context":              into(&f.Build.Context),
		"build":                f.readBuild,
		"workspaceFolder":      into(&f.WorkspaceFolder),
		"containerUser":        into(&f.ContainerUser),
		"remoteUser":           into(&f.RemoteUser),
		"containerEnv":         into(&f.ContainerEnv),
		"remoteEnv":            into(&f.RemoteEnv),
		"init":                 into(&f.Init),
		"mounts":               f.readMounts,
		"onCreateCommand":      steps(&f.OnCreate),
		"updateContentCommand": steps(&f.UpdateContent),
		"postCreateCommand":    steps(&f.PostCreate),
		"postStartCommand":     steps(&f.PostStart),
		"postAttachCommand":    steps(&f.PostAttach),
	}
}

// refusedKeys are what a file may ask for and does not get.
func refusedKeys() map[string]string {
	return map[string]string{
		"privileged":        "a container has no more rights than the sandbox around it",
		"capAdd":            "a container has no more rights than the sandbox around it",
		"securityOpt":       "a container is confined as the sandbox says",
		"runArgs":           "a project does not choose how the engine is called",
		"initializeCommand": "it would run outside of the container: run it yourself",
		"workspaceMount":    "the project is mounted whole, as the sandbox shows it",
		"features":          "features are not installed: use an image that has them",
		"appPort":           "nothing inside is published by itself: --publish PORT does it",
		"forwardPorts":      "nothing inside is published by itself: --publish PORT does it",
	}
}

// editors are the keys that say nothing to an engine.
func editors() []string {
	return []string{"$schema", "name", "customizations", "settings", "extensions", "hostRequirements", "portsAttributes",
		"otherPortsAttributes", "shutdownAction", "userEnvProbe", "waitFor", "updateRemoteUserUID", "overrideCommand",
		"overrideFeatureInstallOrder", "devPort", "secrets"}
}

// asks says whether a value asks for anything: false, null and what is empty do not.
func asks(v json.RawMessage) bool {
	return !slices.Contains([]string{"false", "null", "[]", "{}", `""`}, strings.Join(strings.Fields(string(v)), ""))
}

func into(to any) func(json.RawMessage) ([]string, error) {
	return func(v json.RawMessage) ([]string, error) {
		if err := json.Unmarshal(v, to); err != nil {
			return nil, errors.New("it is of another type")
		}
		return nil, nil
	}
}

func (f *File) readBuild(v json.RawMessage) (refused []string, _ error) {
	var table map[string]json.RawMessage
	if _, err := into(&table)(v); err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(table)) {
		to := map[string]any{"dockerfile": &f.Build.Dockerfile, "context": &f.Build.Context, "target": &f.Build.Target,
			"args": &f.Build.Args}[name]
		switch {
		case name == "cacheFrom":
			one := ""
			if json.Unmarshal(table[name], &one) == nil {
				f.Build.CacheFrom = []string{one}
				continue
			}
			to = &f.Build.CacheFrom
		case name == "options":
			refused = append(refused, "its options: a project does not choose how the engine is called")
			continue
		case to == nil:
			refused = append(refused, "sbx does not know "+quoting.Quote(name)+" in it")
			continue
		}
		if _, err := into(to)(table[name]); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return refused, nil
}

// readMounts takes volumes, which are the engine's. A mount of the host's is not one.
func (f *File) readMounts(v json.RawMessage) (refused []string, _ error) {
	var list []json.RawMessage
	if _, err := into(&list)(v); err != nil {
		return nil, err
	}
	for _, x := range list {
		fields := map[string]any{}
		text := ""
		if json.Unmarshal(x, &text) == nil {
			for _, part := range strings.Split(text, ",") {
				k, v, _ := strings.Cut(part, "=")
				fields[k] = v
			}
		} else if _, err := into(&fields)(x); err != nil {
			return nil, err
		}
		get := func(names ...string) (s string) {
			for _, name := range names {
				if v, ok := fields[name].(string); ok {
					s = v
				}
			}
			return s
		}
		m := Mount{Volume: get("src", "source"), Target: get("dst", "destination", "target")}
		if get("type") != "volume" || !isVolume(m.Volume) || !strings.HasPrefix(m.Target, "/") ||
			strings.ContainsAny(m.Target, ":,") {
			refused = append(refused, "the mount of "+quoting.Quote(m.Volume)+": a project does not choose what of the host is "+
				"shown; volumes are taken")
			continue
		}
		f.Mounts = append(f.Mounts, m)
	}
	return refused, nil
}

// isVolume says whether a name is one of the engine's, and no path. It may still hold a variable.
func isVolume(s string) bool {
	for _, known := range []string{"${devcontainerId}", "${localWorkspaceFolderBasename}"} {
		s = strings.ReplaceAll(s, known, "x")
	}
	return s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") == "" &&
		strings.Trim(s[:1], "_.-") != ""
}

// steps reads commands: a line, the words of one, or an object of either, which are run one after the other.
func steps(to *[]Step) func(json.RawMessage) ([]string, error) {
	return func(v json.RawMessage) ([]string, error) {
		var s Step
		if json.Unmarshal(v, &s.Line) == nil || json.Unmarshal(v, &s.Words) == nil {
			if s.Line != "" || len(s.Words) > 0 {
				*to = append(*to, s)
			}
			return nil, nil
		}
		var object map[string]json.RawMessage
		if _, err := into(&object)(v); err != nil {
			return nil, err
		}
		for _, name := range slices.Sorted(maps.Keys(object)) {
			var s Step
			if json.Unmarshal(object[name], &s.Line) != nil && json.Unmarshal(object[name], &s.Words) != nil {
				return nil, fmt.Errorf("%s is no command", quoting.Quote(name))
			}
			*to = append(*to, s)
		}
		return nil, nil
	}
}
