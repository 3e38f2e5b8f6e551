# What a program must not do, wherever it runs in a sandbox: each line is a "pass:" there, and a "FAIL:" outside of any.
check() {
	name=$1; shift
	if "$@" 2>/dev/null; then echo "pass: $name"; else echo "FAIL: $name"; fi
}
absent() { ! [ -e "$1" ]; }
refused() { ! sh -c "$1"; }
check "the kernel is the machine's" [ "$(uname -r)" = "$VERSION" ]
check "a secret of the home is absent" absent ~/.ssh/id
check "a secret of the project is absent" absent .env
check "nothing is written outside" refused 'echo inside >../attempt'
check "a guarded name is not written" refused 'echo inside >.git/hooks/pre-commit'
check "the host's network is not reached" refused "exec bash -c ': </dev/tcp/127.0.0.1/$PORT'"
check "a process outside gets no signal" refused "kill -0 $HOST"
