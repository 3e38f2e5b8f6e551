package request

import (
	"bufio"
	"fmt"
	"os"
	"strings"

	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/option"
	"sbx.example/sbx/broker/internal/quoting"
)

// What people bring from other programs. What is harmless and means one thing is an option; the rest is explained.

// known are options of others that would open something, or mean several things here.
func known() []option.Known {
	return []option.Known{
		{Words: "--allow-net --network --with-network --share-net",
			Hint: "--allow-network lets it reach every public address, --allow-host NAME only that one"},
		{Words: "--no-net --unshare-net --offline",
			Hint: "there is no network unless it is asked for; --no-network makes sure"},
		{Words: "--volume --mount --bind --ro-bind --dev-bind",
			Hint: "--ro PATH and --rw PATH show a place of the host's under its own name"},
		{Words: "--read-only", Hint: "--ephemeral keeps the project as it is, --static --profile strict shows no project"},
		{Words: "--host --hosts", Hint: "--allow-host NAME lets it reach one host, --hostname NAME is its own name"},
		{Words: "--deny --deny-host --block",
			Hint: "what is not granted is not let in; --hide PATH takes a place away, sbx policy add deny PATTERN in all runs"},
		{Words: "--allow --allow-all --unsafe --yolo",
			Hint: "one thing at a time is granted: --rw PATH, --allow-host NAME, ..."},
		{Words: "--port --expose", Hint: "--publish HOST:PORT leads a port of the host's to it"},
		{Words: "--user -u --root --sudo", Hint: "CMD runs as you: nothing inside is another user's"},
		{Words: "--cpus", Hint: "--cpu 150% is one and a half processors"},
		{Words: "--memory-limit --max-memory", Hint: "--memory SIZE"},
		{Words: "--background --daemon", Hint: "--detach returns when the sandbox stands"},
		{Words: "--dynamic --ask", Hint: "--mode dynamic asks about what is not granted"},
		{Words: "--shell", Hint: "without CMD, sbx run is your shell"},
		{Words: "--debug --trace", Hint: "--verbose prints active restrictions; debuggers and strace work inside"},
		{Words: "--color --no-color", Hint: "NO_COLOR=1 in the environment takes colours away"},
		{Words: "--cwd --chdir --dir -C", Hint: "--workdir DIR"},
		{Words: "--setenv", Hint: "--env K=V"},
		{Words: "--privileged --cap-add --security-opt",
			Hint: "nothing inside has a privilege; --containers and --allow-kvm open what containers and QEMU need"},
		{Words: "--docker --podman",
			Hint: "--containers lets podman work inside, with a store of its own; docker's socket would be root's"},
		{Words: "--kvm", Hint: "--vm shows QEMU's images; --allow-kvm shows /dev/kvm too, which opens more of the kernel"},
		{Words: "--image", Hint: "it shows the host's own programs; podman runs images: " +
			"sbx run --containers -- podman run IMAGE"},
	}
}

// setProfile takes the name of a profile, and not a port: -p means that elsewhere.
func (r *Request) setProfile(v string) error {
	if strings.Contains(v, ":") && strings.Trim(v, "0123456789.:[]/tcpud") == "" {
		return option.Wrong("-p is --profile here, and "+quoting.Quote(v)+" is none", "sbx run --publish "+quoting.Shell(v))
	}
	r.Profile = v
	return nil
}

// addEnvFile reads variables, one in each line: K=V as it stands, or K for the caller's.
func (r *Request) addEnvFile(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimLeft(lines.Text(), " \t")
		if line == "" || line[0] == '#' {
			continue
		}
		if err := r.addEnv(line); err != nil {
			return fmt.Errorf("%s:%d: %w", quoting.Quote(name), n, err)
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("reading %s: %w", quoting.Quote(name), err)
	}
	return nil
}

// Misread says that the words behind the options show that an option was meant otherwise.
func (r *Request) Misread(words []string) error {
	if !r.Verbose || len(words) == 0 {
		return nil
	}
	from, _, two := strings.Cut(words[0], ":")
	if !two || from == "" || !strings.ContainsAny(from[:1], "/.~$") || host.Exists(words[0]) {
		return nil
	}
	return option.Wrong("-v is --verbose here, and "+quoting.Quote(words[0])+" would be the command",
		"--ro PATH and --rw PATH show a place of the host's under its own name: sbx run --rw "+quoting.Place(from))
}
