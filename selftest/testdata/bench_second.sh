# What a second run costs, with the start of the sandbox: a tool outside, and sbx run -- the tool, in turn. Each has a fresh home of its own
# in which it has run once, and a copy of the project, in which one file is edited before each build.
# bench_second.sh DIR GO [USER COMMAND...]: as bench_project.sh. With ONLY, a pattern such as "^go build", only what it matches is measured; WORKS is how many rounds.
set -eu
here=$1 go=$2
shift 2
homes=$here/homes
as() { env -i PATH="$(dirname "$go"):/usr/bin:/bin" GOPROXY=off GOTOOLCHAIN=local GOFLAGS=-buildvcs=false NO_UPDATE_NOTIFIER=1 SBX="$here/sbx" "$@"; }
wanted() { command -v "${1%% *}" >/dev/null && echo "$1" | grep -qE "${ONLY:-.}"; }

# numbered N TEXT: a line for each number, in which # is the number.
numbered() { seq "$1" | while read -r i; do echo "$2" | sed "s/#/$i/g"; done; }

go_build() {
	printf 'module example.org/app\n\ngo 1.21\n' >go.mod
	for i in $(seq 40); do mkdir -p p$i; printf 'package p%s\n\nimport "net/http"\n\nfunc F() int { return http.StatusOK }\n' $i >p$i/p.go; done
	{ echo 'package main'; numbered 40 'import "example.org/app/p#"'; echo 'func main() { n := 0'; numbered 40 'n += p#.F()'; echo 'println(n) }'; } >main.go
	echo 'echo "// $$" >>p1/p.go; set -- go build -o app .' >turn.sh
}
cargo_build() {
	mkdir -p src
	{ printf '[package]\nname = "app"\nversion = "0.1.0"\nedition = "2021"\n[dependencies]\n'; numbered 10 'c# = { path = "c#" }'; } >Cargo.toml
	for i in $(seq 10); do
		mkdir -p c$i/src
		printf '[package]\nname = "c%s"\nversion = "0.1.0"\nedition = "2021"\n' $i >c$i/Cargo.toml
		numbered 200 'pub fn f#(x: u64) -> String { format!("{}", x + #) }' >c$i/src/lib.rs
	done
	{ echo 'fn main() {'; numbered 10 'println!("{}", c#::f1(#));'; echo '}'; } >src/main.rs
	echo 'echo "// $$" >>src/main.rs; set -- cargo build -q --offline' >turn.sh
}
npm_ci() {
	mkdir -p parts/package
	deps=
	for i in $(seq "${PACKAGES:-500}"); do
		for f in 1 2 3 4 5 6 7 8 9; do echo "module.exports = $f + $i" >parts/package/$f.js; done
		echo '{"name": "p'$i'", "version": "1.0.0"}' >parts/package/package.json
		tar -C parts -czf p$i.tgz package
		deps="$deps${deps:+, }\"p$i\": \"file:p$i.tgz\""
	done
	echo "{\"name\": \"all\", \"version\": \"1.0.0\", \"dependencies\": {$deps}}" >package.json
	HOME=$here npm install --package-lock-only --offline --no-audit --no-fund --loglevel error --cache "$here/npm"
	echo 'set -- npm ci --offline --no-audit --no-fund --loglevel error' >turn.sh
}

user=$*
for tool in "go build" "cargo build" "npm ci"; do
	wanted "$tool" || continue
	made=$(echo "$tool" | tr ' ' _)
	for side in outside inside; do mkdir -p "$homes/$side/$made"; done
	cd "$homes/outside/$made"
	$made
	cp -R . "$homes/inside/$made"
	# turn.sh edits and says what is run; the edit is no part of what is compared, and takes no time beside it.
	printf 'HOME=%s; export HOME; cd $HOME/%s; . ./turn.sh; exec "$@"\n' "$homes/outside" "$made" >"$homes/outside/$made.sh"
	printf 'HOME=%s; export HOME; cd $HOME/%s; . ./turn.sh; exec $SBX run -q --env GOPROXY --env GOTOOLCHAIN --env GOFLAGS -- "$@"\n' "$homes/inside" "$made" >"$homes/inside/$made.sh"
	[ "$(id -u)" != 0 ] || chown -R 42424:42424 "$homes"
	as ${user:+$user} "$here/bench" -n "${WORKS:-7}" -warm 1 "$tool, second run=sh $homes/outside/$made.sh" "sbx run -- $tool=sh $homes/inside/$made.sh"
done
