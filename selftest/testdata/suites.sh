# The own tests of Go and Python, on the host and in a sandbox, by the same ordinary user and compared test by test.
# A difference that has no row in docs/SUITE-tests.md makes it fail.
#	suites.sh TOP GO [go|python...]
# GOPACKAGES and PYTHONTESTS name others than all.
set -eu
top=$1 go=$2
shift 2
[ $# -gt 0 ] || set -- go python
if [ "${SUITES_ALONE:-}" != 1 ]; then
	case " $* " in *' python '*) sh "$top/selftest/testdata/needs.sh" suites ;; esac
	[ "$(id -u)" != 0 ] || SUITES_ALONE=1 exec unshare --mount sh "$0" "$top" "$go" "$@" # nobody else sees what is mounted
fi
above=$HOME
[ "$(id -u)" != 0 ] || above=/home # where an ordinary user can go
here=$(mktemp -d "$above/sbx-suites-XXXXXX")
trap 'rm -rf "$here"' EXIT
chmod 755 "$here"
home=$here/h project=$here/h/p # short, for paths of sockets
mkdir -p "$project"
cp "$top/bin/sbx" "$here/sbx"
(cd "$top" && CGO_ENABLED=0 "$go" build -trimpath -o "$here/compare" ./selftest/compare)
user=
if [ "$(id -u)" = 0 ]; then # the tests ask for an account, and for a second group
	mkdir "$here/etc"
	{ cat /etc/passwd; echo "tester:x:42424:42424::$home:/bin/sh"; } >"$here/etc/passwd"
	{ cat /etc/group; printf 'tester:x:42424:\nothers:x:42425:tester\n'; } >"$here/etc/group"
	mount -t overlay -o "lowerdir=$here/etc:/etc" none /etc
	chown -R 42424:42424 "$home"
	user="setpriv --reuid 42424 --regid 42424 --groups 42424,42425"
fi
path=/usr/bin:/bin
status=0

# as runs a command as the user, in the project, with signals as a terminal leaves them: a shell ignores SIGINT for what
# it puts into the background.
as() {
	(cd "$project" && env -i --default-signal=INT,QUIT,HUP HOME="$home" LANG=C.UTF-8 PATH="$path" $user "$@" </dev/null)
}

# compare SUITE NAME OUTSIDE INSIDE
compare() {
	echo "== $1, $2"
	"$here/compare" -slow 5 -page "$top/docs/$1-tests.md" "$3" "$4" || status=1
}

go_suite() {
	packages=${GOPACKAGES:-os os/exec os/signal syscall path/filepath net/http io/fs}
	as cp -r "$("$go" env GOROOT)" goroot # some tests write beside their sources
	path=$project/goroot/bin:/usr/bin:/bin
	run="cd goroot/src && GOROOT=$project/goroot GOCACHE=$project/cache GOFLAGS=-count=1 GOTOOLCHAIN=local go test -json $packages"
	as sh -c "$run" >"$here/outside.json" || true
	as "$here/sbx" run -q --static -- sh -c "$run" >"$here/inside.json" || true
	compare go --static "$here/outside.json" "$here/inside.json"
}

# What a sandbox can make a difference to: files, processes, signals, terminals, users, sockets, and what starts programs.
python_tests='test_os test_subprocess test_venv test_runpy test_importlib test_selectors test_resource test_posix test_pathlib
	test_shutil test_tempfile test_socket test_asyncio test_signal test_pty test_threading test_mmap test_fcntl test_sqlite3
	test_multiprocessing_fork test_multiprocessing_forkserver test_multiprocessing_spawn test_multiprocessing_main_handling
	test_io test_file test_fileio test_bufio test_stat test_glob test_zipfile test_zipapp test_zipimport test_tarfile
	test_unicode_file test_unicode_file_functions test_eintr test_faulthandler test_ssl test_site test_cmd_line
	test_cmd_line_script test_compileall test_py_compile test_import test_pkgutil test_posixpath test_genericpath
	test_fileinput test_filecmp test_dbm test_dbm_dumb test_dbm_ndbm test_shelve test_mailbox test_netrc test_httpservers
	test_poll test_epoll test_select test_openpty test_ioctl test_tty test_termios test_getpass test_pwd test_grp test_popen
	test_platform test_locale test_time test_wait3 test_wait4 test_fork1 test_regrtest test_support test_embed
	test_concurrent_futures test_sysconfig test_sys test_atexit test_logging test_pdb test_bdb test_pydoc test_trace
	test_uuid test_gzip test_bz2 test_lzma test_linecache test_fnmatch test_ftplib test_imaplib test_smtplib test_poplib
	test_xmlrpc test_urllib test_urllib2 test_urllib2_localnet test_ctypes test_distutils test_readline test_repl
	test_script_helper test_source_encoding test_doctest test_threadsignals test_threading_local test_crypt test_hashlib
	test_random test_secrets test_configparser test_curses test_cgi test_wsgiref test_largefile test_univnewlines
	test_inspect test_asyncore test_asynchat test_syslog test_audit test_modulefinder test_pickle'

python_suite() {
	as python3 -c "import importlib.util as u; exit(u.find_spec('test.test_os') is None)" || exit 1 # needs.sh has said why
	tests=
	for t in ${PYTHONTESTS:-$python_tests}; do
		if as python3 -c "import importlib.util as u; exit(u.find_spec('test.$t') is None)"; then
			tests="$tests $t"
		else
			echo "not here: $t"
		fi
	done
	as mkdir t
	python outside "$project/t"
	for setting in "$project/t" "/tmp" "/tmp --static" "/tmp --gate notify"; do
		set -- $setting
		tmp=$1
		shift
		rm -f "$project/inside.xml"
		python inside "$tmp" "$here/sbx" run -q "$@" --
		compare python "temporary files in $setting" "$project/outside.xml" "$project/inside.xml"
	done
}

# python SIDE FOLDER [COMMAND...]: the tests with their temporary files in FOLDER. After the first socket of UDP-Lite that
# it does not get, test_socket leaves no results, so those are left out on both sides. A file of tests that hangs or is killed
# leaves no results to compare, so it is a failure on whichever side. Ten minutes are an idle host's patience.
python() {
	side=$1 tmp=$2
	shift 2
	patience=$(awk -v n="$(nproc)" '{ slow = $1 / n; print int(600 * (slow > 1 ? slow : 1)) }' /proc/loadavg)
	as "$@" env TMPDIR="$tmp" python3 -m test -j"$(nproc)" --timeout "$patience" --tempdir "$tmp" --junit-xml "$side.xml" \
		-i '*UDPLITE*' -u all,-network,-largefile,-urlfetch,-audio,-gui $tests >"$here/$side.log" 2>&1 || true
	tail -1 "$here/$side.log"
	! grep -E 'test_[a-z0-9_]+ (crashed|timed out)' "$here/$side.log" || status=1
	grep -q '^Tests result: ' "$here/$side.log" || { echo "the tests came to no end"; status=1; }
}

for suite; do
	${suite}_suite
done
exit $status
