package devcontainer

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"path"
	"slices"
	"strings"
)

// Place is where a file is carried out.
type Place struct {
	File    string // the file's own path
	Project string // the directory that is mounted
	Dir     string // the current one, in the project
	Text    []byte // of the file
	Env     func(name string) (string, bool)
	Pass    []string // variables of the sandbox that the container has, too
}

// Folder is where the project stands in the container.
func (f *File) Folder(at Place) string {
	if f.WorkspaceFolder == "" {
		return "/workspaces/" + path.Base(at.Project)
	}
	return path.Clean("/" + f.expand(f.WorkspaceFolder, at, ""))
}

// Script is a shell's text that makes the container's image where it is not there and becomes the engine with the
// container's program, which is the script's own words. The engine's store has to last, or all is made each time.
func (f *File) Script(at Place) string {
	folder := f.Folder(at)
	var b strings.Builder
	line := func(words ...string) { b.WriteString(strings.Join(words, " ") + "\n") }
	line("set -e")
	line("image=" + word(f.image(at)))
	if f.Build.Dockerfile != "" {
		line(append(f.build(at, folder), ">&2")...)
	}
	line(`podman image exists "$image" || podman pull -q "$image" >&2`)
	f.user(line)
	options := f.options(at, folder)
	if len(f.once()) > 0 { // what that leaves in the container is an image of its own; what it leaves in the project stays
		line(`ready=localhost/sbx-devcontainer:` + digest(at) + `-$(podman image inspect -f '{{.ID}}' "$image")`)
		line(`if ! podman image exists "$ready"; then`)
		line(`  made=$(podman create $users ` + options + ` "$image" sh -c ` + word(f.steps(f.once(), at, folder)) + `)`)
		line(`  podman start -a "$made" >&2 && podman commit -q "$made" "$ready" >&2 || status=$?`)
		line(`  podman rm -f "$made" >/dev/null`)
		line(`  [ -z "$status" ] || { echo "sbx: a command of ` + path.Base(at.File) + ` failed ($status)" >&2; exit 125; }`)
		line("fi")
		line(`image=$ready`)
	}
	line(`t=; if [ -t 0 ] && [ -t 1 ]; then t=-t; fi`)
	line(`exec podman run --rm -i $t $users ` + options + ` "$image" sh -c ` +
		word(f.steps(f.each(), at, folder)+`exec "$@"`) + ` sh "$@"`)
	return b.String()
}

// image is the name of the image that is taken or made.
func (f *File) image(at Place) string {
	if f.Image != "" {
		return f.Image
	}
	return "localhost/sbx-devcontainer:" + digest(at)
}

// digest tells one file of one project from any other.
func digest(at Place) string {
	sum := sha256.Sum256([]byte(at.File + "\x00" + string(at.Text)))
	return hex.EncodeToString(sum[:8])
}

func (f *File) build(at Place, folder string) []string {
	dir := path.Dir(at.File)
	out := []string{"podman", "build", "-q", "-t", `"$image"`, "-f", word(path.Join(dir, f.expand(f.Build.Dockerfile,
		at, folder)))}
	if f.Build.Target != "" {
		out = append(out, "--target", word(f.Build.Target))
	}
	for _, name := range slices.Sorted(maps.Keys(f.Build.Args)) {
		out = append(out, "--build-arg", word(name+"="+f.expand(f.Build.Args[name], at, folder)))
	}
	for _, from := range f.Build.CacheFrom {
		out = append(out, "--cache-from="+word(f.expand(from, at, folder)))
	}
	return append(out, word(path.Join(dir, f.expand(f.Build.Context, at, folder))))
}

// user has a user of the container's be the caller, so that what it writes in the project is the caller's. Without one
// root of the container is.
func (f *File) user(line func(...string)) {
	name := f.RemoteUser
	if name == "" {
		name = f.ContainerUser
	}
	if name == "" || name == "root" {
		line(`users='--user 0'`)
		return
	}
	// In the image's own file, so that nothing of the image runs for it: podman 4.3 now and then loses what a short
	// container has written.
	line(`files=$(mktemp -d)`)
	line(`made=$(podman create "$image" true)`)
	line(`podman cp "$made:/etc/passwd" "$files/passwd" >&2 || :`)
	line(`podman rm -f "$made" >/dev/null`)
	line(`users=$([ ! -f "$files/passwd" ] || [ -L "$files/passwd" ] || while IFS=: read -r name _ uid gid _; do`)
	line(`  if [ "$name" = ` + word(name) + ` ] || [ "$uid" = ` + word(name) + ` ]; then echo "$uid:$gid"; break; fi`)
	line(`done <"$files/passwd")`)
	line(`rm -rf "$files"`)
	// The image says what it likes, and more words would be options of the engine's.
	line(`case $users in "" | :* | *: | *:*:* | *[!0-9:]*) echo "sbx: the image does not say who" ` + word(name) +
		` is >&2; exit 125;; esac`)
	line(`users="--userns=keep-id:uid=${users%:*},gid=${users#*:} --user $users"`)
}

// options are those of each container.
func (f *File) options(at Place, folder string) string {
	out := []string{"--network", "host", "--entrypoint", "''", "-v", word(at.Project + ":" + folder), "-w",
		word(folder + strings.TrimPrefix(at.Dir, at.Project))}
	if f.Init {
		out = append(out, "--init")
	}
	for _, m := range f.Mounts {
		out = append(out, "-v", word(f.expand(m.Volume, at, folder)+":"+m.Target))
	}
	for _, name := range slices.Sorted(maps.Keys(f.ContainerEnv)) {
		out = append(out, "--env", word(name+"="+f.expand(f.ContainerEnv[name], at, folder)))
	}
	for _, name := range at.Pass {
		out = append(out, "--env", word(name))
	}
	return strings.Join(out, " ")
}

// steps are commands as a shell's text, with the environment of remoteEnv.
func (f *File) steps(list []Step, at Place, folder string) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(f.RemoteEnv)) {
		if v := f.RemoteEnv[name]; v == nil {
			b.WriteString("unset " + name + "\n")
		} else {
			b.WriteString("export " + name + "=" + f.inShell(*v, at, folder) + "\n")
		}
	}
	if len(list) > 0 {
		b.WriteString("set -e\n")
	}
	for _, s := range list {
		words := []string{"sh", "-c", word(f.expand(s.Line, at, folder))}
		if s.Line == "" {
			words = nil
			for _, w := range s.Words {
				words = append(words, word(f.expand(w, at, folder)))
			}
		}
		b.WriteString(strings.Join(words, " ") + "\n")
	}
	return b.String()
}

// word is a text as one word of any shell.
func word(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
