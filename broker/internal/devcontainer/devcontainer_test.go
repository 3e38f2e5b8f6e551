package devcontainer

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const full = `{
	// comments and a trailing comma
	"name": "x", "customizations": {"vscode": {}},
	"build": {"dockerfile": "../Containerfile", "context": "..", "args": {"A": "it's ${localEnv:SHOWN}"}, "target": "dev",
		"options": ["--privileged"], "cacheFrom": "registry.example/x"},
	"workspaceFolder": "/w/${localWorkspaceFolderBasename}",
	"remoteUser": "dev",
	"containerEnv": {"B": "${localEnv:HIDDEN:none} ${localEnv:HIDDEN}"},
	"remoteEnv": {"PATH": "/o'pt:${containerEnv:PATH}", "GONE": null},
	"mounts": ["source=cache-${devcontainerId},target=/cache,type=volume", "source=/run/docker.sock,target=/s,type=bind",
		{"type": "bind", "source": "${localEnv:HOME}/.ssh", "target": "/ssh"}],
	"postCreateCommand": ["npm", "ci"], "onCreateCommand": "echo made",
	"updateContentCommand": {"b": "second", "a": ["first"]},
	"postAttachCommand": "echo attached", "postStartCommand": "echo started",
	"privileged": true, "capAdd": [], "runArgs": ["--net=host"], "initializeCommand": "id", "features": {"x": {}},
	"forwardPorts": [80], "brandNew": 1,
}`

func place(file string) Place {
	return Place{File: file, Project: "/home/u/pro ject", Dir: "/home/u/pro ject/sub", Text: []byte("text"),
		Env: func(name string) (string, bool) { return "shown", name == "SHOWN" }, Pass: []string{"TERM"}}
}

func TestRead(t *testing.T) {
	f, refused, err := Read([]byte(full))
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, r := range refused {
		keys = append(keys, r.Key)
		if r.Why == "" {
			t.Errorf("%s without a reason", r.Key)
		}
	}
	want := "brandNew build features forwardPorts initializeCommand mounts mounts privileged runArgs"
	if got := strings.Join(keys, " "); got != want {
		t.Errorf("refused %s\nwant    %s", got, want)
	}
	if len(f.Mounts) != 1 || f.Mounts[0].Target != "/cache" {
		t.Errorf("%+v", f.Mounts)
	}
	for text, says := range map[string]string{
		`[]`: "no JSON object", `null`: "no JSON object", `{`: "not JSON with comments", `{"image": 1}`: "another type",
		`{}`: "neither an image nor", `{"image": "x", "dockerFile": "y"}`: "both", `{"image": "--privileged"}`: "is no name",
		`{"image": "a b"}`: "is no name", `{"image": "a", "containerEnv": {"A=B; x": "1"}}`: "no name of a variable",
		`{"image": "a", "postCreateCommand": 1}`: "another type", `{"image": "a", "postCreateCommand": {"x": 1}}`: "no command",
		`{"image": "a", "remoteUser": "-u"}`: "is no name", `{"dockerComposeFile": "x"}`: "compose is not supported"} {
		if _, _, err := Read([]byte(text)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %s", text, err, says)
		}
	}
	if _, _, err := Read(make([]byte, MaxFile+1)); err == nil {
		t.Error("a file of any length is read")
	}
	if _, refused, err := Read([]byte(`{"image": "x", "privileged": false, "capAdd": [ ]}`)); err != nil || refused != nil {
		t.Errorf("what asks for nothing is refused: %v %v", refused, err)
	}
}

// The script is what a shell makes of it: each word of the engine's arrives as it was meant.
func TestScript(t *testing.T) {
	f, _, err := Read([]byte(full))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	// An engine that says what it is told, and has no image yet.
	engine := "#!/bin/sh\nfor a; do printf '[%s] ' \"$a\"; done >>" + dir + "/log; echo >>" + dir + "/log\n" +
		"case \"$*\" in *exists*) exit 1;; cp*) printf 'root:x:0:0:\\ndev:x:1000:1001::/:\\n' >\"$3\";; " +
		"'image inspect'*) echo abc;; create*) echo made;; esac\n"
	if err := os.WriteFile(filepath.Join(dir, "podman"), []byte(engine), 0o755); err != nil {
		t.Fatal(err)
	}
	const file = "/home/u/pro ject/.devcontainer/devcontainer.json"
	cmd := exec.Command("sh", "-c", f.Script(place(file)), "sh", "echo", "a b")
	cmd.Env = []string{"PATH=" + dir + ":/usr/bin:/bin"}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	log, err := os.ReadFile(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"[build] [-q] [-t] [localhost/sbx-devcontainer:", "[-f] [/home/u/pro ject/Containerfile] [--target] [dev] " +
			"[--build-arg] [A=it's shown] [--cache-from=registry.example/x] [/home/u/pro ject] \n",
		"[--userns=keep-id:uid=1000,gid=1001] [--user] [1000:1001]",
		"[-v] [/home/u/pro ject:/w/pro ject] [-w] [/w/pro ject/sub]",
		"[cache-" + digest(Place{File: file}) + ":/cache]", "[--env] [B=none ] [--env] [TERM]",
		"[sh] [-c] [unset GONE\nexport PATH='/o'\\''pt:'\"${PATH-}\"''\nset -e\n" +
			"sh -c 'echo made'\n'first'\nsh -c 'second'\n" +
			"'npm' 'ci'\n]",
		"[commit] [-q] [made] [localhost/sbx-devcontainer:", "[rm] [-f] [made]",
		"sh -c 'echo started'\nsh -c 'echo attached'\nexec \"$@\"] [sh] [echo] [a b] \n",
	} {
		if !strings.Contains(string(log), want) {
			t.Errorf("no %s in\n%s", want, log)
		}
	}
	if strings.Contains(string(log), "--privileged") || strings.Contains(string(log), "docker.sock") {
		t.Errorf("what is refused is asked for:\n%s", log)
	}
}

// TestImageGivesNoOptions: what the project's image says of its user are numbers, or nothing is run.
func TestImageGivesNoOptions(t *testing.T) {
	f, _, err := Read([]byte(full))
	if err != nil {
		t.Fatal(err)
	}
	for says, runs := range map[string]bool{"dev:x:1000:1000:": true, "a:x:0:0:\ndev:x:1000:1000": true,
		"dev:x:1000 --privileged:1": false, "dev:x:--privileged:1": false, "": false, "dev:x:1:": false, "dev": false,
		"devel:x:1:1:": false, "dev:x:1\n--privileged:1": false, "dev:x:*:*": false} {
		dir := t.TempDir()
		engine := "#!/bin/sh\ncase $1 in cp) printf '" + says + "\\n' >\"$3\"; exit;; esac\n" +
			"for a; do printf '[%s] ' \"$a\"; done >>" + dir + "/log\ncase $1 in create | image) echo x;; esac\n"
		if err := os.WriteFile(filepath.Join(dir, "podman"), []byte(engine), 0o755); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("sh", "-c", f.Script(place("/p/devcontainer.json")), "sh", "true")
		cmd.Env, cmd.Dir = []string{"PATH=" + dir + ":/usr/bin:/bin"}, dir
		out, err := cmd.CombinedOutput()
		log, _ := os.ReadFile(filepath.Join(dir, "log"))
		if runs != (err == nil) || strings.Contains(string(log), "[--privileged]") ||
			runs != strings.Contains(string(log), "[run] [--rm]") {
			t.Errorf("%q: %v\n%s\n%s", says, err, out, log)
		}
	}
}

// Whatever a project writes, no word of it leaves its place: the engine is started with options of sbx's alone.
func FuzzScript(f *testing.F) {
	f.Add(full)
	f.Add(`{"image": "a", "remoteUser": "b", "containerEnv": {"A": "'; x"}, "mounts": ["type=volume,source=a,target=/b"]}`)
	f.Add(`{"image": "a", "remoteEnv": {"A": "${containerEnv:B} $(x)"}, "postStartCommand": "'\"; exit"}`)
	shell, err := exec.LookPath("sh")
	if err != nil {
		f.Skip("missing: sh")
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text string) {
		file, _, err := Read([]byte(text))
		if err != nil || strings.ContainsRune(text, 0) {
			return
		}
		script := file.Script(place("/p/devcontainer.json"))
		if strings.ContainsRune(script, 0) {
			return // no argument can hold it: the start fails
		}
		engine := `podman() { case $1 in image) [ "$2" != exists ] && echo abc; return 0;; cp) printf "%s:x:1:1:::\\n" "$user" >"$3";; ` +
			`build|pull|create|run|start|commit|rm) ;; *) echo "ESCAPED $1";; esac; }; x() { echo ESCAPED; }; rm() { :; }` +
			"\nmktemp() { echo '" + dir + "'; }\n"
		cmd := exec.Command(shell, "-c", engine+strings.ReplaceAll(script, "exec podman", "podman"), "sh", "true")
		user := cmp.Or(file.RemoteUser, file.ContainerUser)
		cmd.Env, cmd.Dir = []string{"PATH=/nonexistent", "user=" + user}, "/"
		out, err := cmd.CombinedOutput()
		if strings.ContainsAny(user, ":\n") && strings.Contains(string(out), "the image does not say who") {
			return // no line of a passwd has such a name
		}
		if err != nil || slices.Contains(strings.Fields(string(out)), "ESCAPED") {
			t.Errorf("%q: %v\n%s\n%s", text, err, out, script)
		}
	})
}
