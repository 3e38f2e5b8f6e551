# make          build bin/sbx, bin/sbx-helper (where there is one), bin/sbx-host, bin/sbx-proxy and bin/sbx-probe, all static
# make demo     a real job in a sandbox, and what is blocked there
# make test     all tests; as root on Debian what they need is installed first. SBX_THOROUGH=1, as in CI: races, other ways and machines longer
# make check    gofmt, vet, staticcheck; also for arm64 and macOS, what is built there
# make plain    the scripts of a run, with sbx built without broker/internal/faststart (PLAIN=. for all)
# make race     the packages that can, with Go's race detector; prints what their tests cover
# make bench    start-up against bubblewrap, paired, approvals over the socket, the host under bombs, as an ordinary user; as root the network too
# make suites   the own tests of Go and Python, outside and inside, compared test by test (SUITES="go python")
# make vm       other hosts, as virtual machines: all of them (make test takes one)
# make fuzz     every Fuzz function, FUZZTIME (30s) each, and mutated plans against sbx-helper for HELPERFUZZ (5m)
# make audit-helper   what runs with privileges: files, lines, imports
# make packages  .deb and .rpm for amd64 and arm64 in dist/
# make install  into PREFIX (/usr/local), never set-user-id
# make module MODULE=host/path  gives the module another path: go.mod, and every import
# make clean

GO      ?= go
PREFIX  ?= /usr/local
DESTDIR ?=
FUZZTIME ?= 30s
HELPERFUZZ ?= 5m
BUILD    = $(GO) build
# The same for building, vetting and testing, so that each package is compiled once. The race detector needs cgo.
export CGO_ENABLED = 0
export GOFLAGS := $(strip $(GOFLAGS) -trimpath -buildvcs=false)
# sbx begins with the clone of the sandbox's first process (broker/internal/faststart). Without this it is
# slower and does the same.
ENTRY = -ldflags=-E=sbx_start
# One failed test may be run once more, and is named then. "make test RERUN=" runs nothing twice.
RERUN ?= -rerun
# What the race detector cannot watch: these, and the tests of gate/notify, run code of theirs in processes that they clone
# themselves, which it knows nothing of. selftest drives the built programs.
NORACE = shared/stage|broker/internal/(child|agent|netns|faststart|gate/notify)|selftest|selftest/vm

.PHONY: all demo test plain suites race vm needs check bench fuzz audit-helper packages install module clean

all:
	$(BUILD) $(ENTRY) -o bin/sbx ./broker
	@if [ -d helper ]; then set -x; $(BUILD) -ldflags=-E=sbx_helper_start -o bin/sbx-helper ./helper; fi
	$(BUILD) -o bin/sbx-host ./host
	$(BUILD) -o bin/sbx-proxy ./proxy
	$(BUILD) -o bin/sbx-probe ./selftest/probe

demo: all
	@sh selftest/testdata/demo.sh "$(CURDIR)" "$(CURDIR)/bin/sbx"

# Tests wait more than they work, so one package more than there are processors is tested at once. selftest, which takes
# longest, begins first and goes on beside all others. make check vets.
test: needs
	@$(GO) run ./selftest/counttests $(RERUN) -slow 10 $(GO) test -vet=off -ldflags=-w -p $$(($$(nproc) + 1)) -json -timeout 30m ./selftest ./...

# Without faststart everything is the same and slower. make plain PLAIN=. runs everything.
PLAIN ?= ^TestRun$$/^(ahead|environment|exec|exec_terminal|exit_status|judged|leaves_nothing|limits|open_files|processors|profile_.*|session|signals|terminal_programs)$$|^TestEngines$$/^gatefs$$/^gate_files$$
plain: needs
	SBX_PLAIN=1 $(GO) test -count=1 -timeout 30m ./selftest -run '$(PLAIN)'

race: needs
	@CGO_ENABLED=1 $(GO) run ./selftest/counttests $(GO) test -race -cover -json -timeout 20m $$($(GO) list ./... | grep -vE "^$$($(GO) list -m)/($(NORACE))\$$")

suites: all
	@sh selftest/testdata/suites.sh "$(CURDIR)" "$(GO)" $(SUITES)

vm: needs
	@sh selftest/vm/testdata/announce.sh
	SBX_VM=full SBX_MUST_WORK=1 $(GO) test -count=1 -v -timeout 6h ./selftest/vm

needs:
	@sh selftest/testdata/needs.sh

check:
	@out=$$(gofmt -l .); if [ -n "$$out" ]; then echo "not formatted:" $$out; exit 1; fi
	$(GO) vet ./...
	GOARCH=arm64 $(BUILD) $(ENTRY) -o /dev/null ./broker
	GOARCH=arm64 $(BUILD) -ldflags=-E=sbx_helper_start -o /dev/null ./helper
	GOARCH=arm64 $(BUILD) -o /dev/null ./host
	GOARCH=arm64 $(BUILD) -o /dev/null ./proxy
	@for arch in arm64 amd64; do set -x; GOOS=darwin GOARCH=$$arch $(BUILD) -o /dev/null ./broker || exit 1; done
	GOOS=darwin GOARCH=arm64 $(GO) vet ./...
	$(GO) vet -tags sbx_plain ./broker
	@for tag in sbx_launch sbx_host; do set -x; $(GO) vet -tags $$tag ./helper; done
	$(GO) tool staticcheck ./...
	$(GO) tool staticcheck -tags sbx_testhooks ./broker/internal/input ./broker/internal/request

bench: all # by its path: PATH is an ordinary user's there
	@sh selftest/testdata/bench.sh "$(CURDIR)" "$$(command -v $(GO))"
	@sh selftest/testdata/bench_network.sh "$(CURDIR)" "$$(command -v $(GO))"

fuzz:
	@set -e; for pkg in $$($(GO) list ./...); do \
		for f in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz' || true); do \
			echo "$$pkg $$f"; $(GO) test -run '^$$' -fuzz "^$$f\$$" -fuzztime $(FUZZTIME) $$pkg; \
		done; \
	done
	SBX_HELPER_FUZZ=$(HELPERFUZZ) $(GO) test -count=1 -v -timeout 2h ./selftest -run HostileHelper

# In the reading order of helper/README.md; what of each is in the program is counted by function, from its own table of lines.
AUDIT = helper/entry_amd64.s helper/main.go helper/verbs.go helper/caller.go helper/quota.go shared/wire/wire.go shared/plan/unpack.go shared/plan/setup.go shared/plan/validate.go \
	helper/permitted.go helper/reduce.go helper/kernel_unsafe.go helper/limits.go helper/refuse.go shared/wire/report.go \
	shared/stage/direct.go shared/stage/clone.go shared/stage/compile.go shared/stage/mounts.go shared/stage/confine.go shared/stage/control_unsafe.go \
	shared/tape/tape.go shared/tape/memory_unsafe.go shared/tape/arena_unsafe.go shared/tape/run_unsafe.go \
	shared/stage/direct_unsafe.go shared/stage/loop_unsafe.go shared/tape/job_unsafe.go shared/tape/clone_amd64.s

audit-helper: all
	@echo "== what bin/sbx-helper holds of this tree, in reading order; lines of a file, and of all so far, that are neither empty nor comment"
	@$(GO) run ./selftest/linked bin/sbx-helper $(AUDIT)
	@echo "(all: with every capability; decides: with none effective; some: five or fewer, with the caller's authority over files; none: when everything has been given up)"
	@echo "== by program: the two of package sbx-helper-suid are built from the same files with one verb (launch), and with two (net, group); the plain one has all"
	@$(GO) run ./selftest/linked -suid
	@for d in helper shared/wire shared/plan shared/tape shared/stage; do echo "imports of $$d: $$($(GO) list -f '{{join .Imports " "}}' ./$$d)"; done
	@echo "== not of the standard library"; $(GO) list -deps -f '{{if not .Standard}}{{.ImportPath}}{{end}}' ./helper | sort -u

packages:
	sh packaging/build.sh

install: all
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/libexec/sbx
	install -m 0755 bin/sbx $(DESTDIR)$(PREFIX)/bin/sbx
	install -m 0755 bin/sbx-host $(DESTDIR)$(PREFIX)/libexec/sbx/sbx-host
	install -m 0755 bin/sbx-proxy $(DESTDIR)$(PREFIX)/libexec/sbx/sbx-proxy
	install -d $(DESTDIR)$(PREFIX)/share/sbx/agents
	install -m 0644 broker/internal/agentprofile/agents/*.toml $(DESTDIR)$(PREFIX)/share/sbx/agents
	install -m 0755 bin/sbx-probe $(DESTDIR)$(PREFIX)/libexec/sbx/sbx-probe
	@if [ -f bin/sbx-helper ]; then set -x; install -m 0755 bin/sbx-helper $(DESTDIR)$(PREFIX)/libexec/sbx/sbx-helper; fi
	@echo "nothing was installed set-user-id; sbx works without"

module:
	@old=$$($(GO) list -m); test -n "$(MODULE)" && grep -rlF "$$old/" --include=*.go --include=*.md --include=go.mod . | xargs sed -i "s#$$old/#$(MODULE)/#g"
	$(GO) mod edit -module "$(MODULE)" && gofmt -w .

clean:
	rm -rf bin dist
