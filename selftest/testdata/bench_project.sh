# What work in a project costs: outside and inside in turn, in one run, and with other builds of sbx beside it.
# bench_project.sh DIR GO [USER COMMAND...]: DIR holds sbx and bench, and home, which belongs to the user. BESIDE names another sbx, MODE the
# options of the sandboxes, WORKS the rounds; with ONLY, a pattern, only what it matches is measured.
set -eu
here=$1 go=$2
shift 2
home=$here/home
as() { env -i NO_UPDATE_NOTIFIER=1 HOME="$home" PATH="$(dirname "$go"):/usr/bin:/bin" GOPROXY=off GOTOOLCHAIN=local GIT_CONFIG_GLOBAL=/dev/null "$@"; }
wanted() { echo "$1" | grep -qE "${ONLY:-.}"; }
own() { [ "$(id -u)" != 0 ] || chown -R 42424:42424 "$home"; }
mkdir -p "$home"
own

# repository NAME DIRECTORIES: a hundred files in each, and a branch in which all are others.
repository() {
	mkdir -p "$home/$1"
	cd "$home/$1"
	[ ! -e .git ] || return 0
	for side in one two; do
		i=0
		while [ $i -lt "$2" ]; do
			mkdir -p d$i
			f=0
			while [ $f -lt 100 ]; do echo "$side $i $f" >d$i/$f; f=$((f + 1)); done
			i=$((i + 1))
		done
		[ -e .git ] || { git init -q -b one . && git config gc.auto 0; }
		[ "$side" = one ] || git checkout -q -b two
		git add . && git -c user.name=a -c user.email=a@example.org commit -qm $side
	done
	git repack -adq
	own
}

# packages NUMBER: what npm ci installs without a network, ten files each.
packages() {
	mkdir -p "$home/packages/parts/package"
	cd "$home/packages"
	[ ! -e package-lock.json ] || return 0
	deps=
	i=0
	while [ $i -lt "$1" ]; do
		for f in 1 2 3 4 5 6 7 8 9; do echo "module.exports = $f + $i" >parts/package/$f.js; done
		echo '{"name": "p'$i'", "version": "1.0.0"}' >parts/package/package.json
		tar -C parts -czf p$i.tgz package
		deps="$deps${deps:+, }\"p$i\": \"file:p$i.tgz\""
		i=$((i + 1))
	done
	echo "{\"name\": \"all\", \"version\": \"1.0.0\", \"dependencies\": {$deps}}" >package.json
	own
	as ${user:+$user} npm install --package-lock-only --offline --no-audit --no-fund --loglevel error
}

# inside SBX: the command that serves times in a sandbox whose project is the current directory.
inside() { echo "${PIN:-} $1 run -q ${MODE---static} --ro $here/bench --rw $home/cache --env GOPROXY --env GOTOOLCHAIN --env GIT_CONFIG_GLOBAL -- $here/bench -times"; }

# compare PROJECT ROUNDS NAME COMMAND
compare() {
	wanted "$3" || return 0
	cd "$home/$1"
	set -- "$2" "$3" "$4"
	if [ -n "${BESIDE:-}" ]; then
		as ${user:+$user} ${PIN:-} "$here/bench" -n "$1" -warm 2 -elsewhere "$(inside "$here/sbx")" -elsewhere "$(inside "$BESIDE")" "$2=$3" "the same, inside=@$3" "the same, other sbx=@@$3"
	else
		as ${user:+$user} ${PIN:-} "$here/bench" -n "$1" -warm 2 -elsewhere "$(inside "$here/sbx")" "$2=$3" "the same, inside=@$3"
	fi
}

user=$*
mkdir -p "$home/cache"
own
if wanted "20 000"; then
	repository twenty 200
	compare twenty "${WORKS:-15}" "git status, 20 000 files" "git status"
	echo 'git checkout -q one && git checkout -q two' >"$home/twenty/turns.sh"
	compare twenty "${WORKS:-5}" "git checkout of 20 000 files, twice" "sh turns.sh"
fi
if wanted "50 000"; then
	repository fifty 500
	compare fifty "${WORKS:-15}" "git status, 50 000 files" "git status"
	compare fifty "${WORKS:-15}" "find, 50 000 files" "find . -type f -size +1M"
	! command -v rg >/dev/null || compare fifty "${WORKS:-15}" "rg, 50 000 files" "rg -j1 -l two.499.99 ."
fi
if wanted "npm" && command -v npm >/dev/null; then
	packages 500
	compare packages "${WORKS:-5}" "npm ci of 500 packages" "npm ci --offline --no-audit --no-fund --loglevel error --cache $home/cache/npm"
fi
if wanted "go build"; then
	mkdir -p "$home/hello"
	printf 'module example.org/hello\n\ngo 1.21\n' >"$home/hello/go.mod"
	printf 'package main\n\nimport "net/http"\n\nfunc main() { println(http.StatusOK) }\n' >"$home/hello/main.go"
	printf 'GOCACHE=%s/cache/go GOFLAGS=-buildvcs=false exec go build -o hello .\n' "$home" >"$home/hello/build.sh"
	own
	compare hello "${WORKS:-15}" "go build, warm" "sh build.sh"
fi
# Ten thousand calls: 10 ms are 1 µs a call, beside the start of a program, which is in every line.
mkdir -p "$home/calls"
own
for k in open-read stat flock record-lock mmap open-write rename create; do
	compare calls "${WORKS:-7}" "10 000 calls, $k" "$here/bench -call $k:10000"
done
PIN="taskset -c 0"
for k in open-write rename create; do
	compare calls "${WORKS:-7}" "10 000 calls, one processor, $k" "$here/bench -call $k:10000"
done
