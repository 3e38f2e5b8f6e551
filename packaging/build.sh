#!/bin/sh
# Builds the packages into dist/: build.sh [amd64|arm64 ...]. Two builds of the same source give the same bytes.
set -eu
cd "$(dirname "$0")"
top=$(cd .. && pwd)
dist=${DIST:-$top/dist}
GO=${GO:-go}
version=$(sed -n 's/^- semver: //p' changelog.yaml | head -n 1)
grep -q "Version = \"$version\"" ../broker/internal/cli/main.go || { echo "changelog.yaml says $version, broker/internal/cli/main.go something else" >&2; exit 1; }
grep -qxF "## $version" ../CHANGELOG.md || { echo "CHANGELOG.md has no section $version" >&2; exit 1; }
# every time stamp in the packages is the release's
SOURCE_DATE_EPOCH=$(date -u -d "$(sed -n 's/^  date: //p' changelog.yaml | head -n 1)" +%s)
export SOURCE_DATE_EPOCH CGO_ENABLED=0
[ $# -gt 0 ] || set -- amd64 arm64
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
umask 022
mkdir -p "$dist"

# The manual and the completions do not depend on the architecture; the program of this machine writes them.
mkdir "$work/man" "$work/completion"
(cd "$top" && $GO build -trimpath -buildvcs=false -ldflags='-w -E=sbx_start' -o "$work/native" ./broker)
for page in sbx.1 sbx-run.1 sbx.toml.5; do "$work/native" man "$page" >"$work/man/$page"; done
cp man/sbx-policy.5 man/sbx-helper.8 man/sbx-host.8 "$work/man"
gzip -9n "$work"/man/*
"$work/native" completion bash >"$work/completion/sbx.bash"
"$work/native" completion zsh >"$work/completion/_sbx"
"$work/native" completion fish >"$work/completion/sbx.fish"

nfpm=$($GO tool -n nfpm) # which builds it: asked each time, go looks through all of its modules again
for arch in "$@"; do
	stage=$work/$arch
	mkdir "$stage"
	cp -r "$work/man" "$work/completion" "$stage"
	# sbx and sbx-helper begin with code of their own, see broker/internal/faststart and helper/entry_amd64.s
	(cd "$top" && for p in sbx=broker sbx-helper=helper sbx-helper-launch=helper sbx-helper-host=helper sbx-host=host sbx-proxy=proxy sbx-probe=selftest/probe; do
		flags='-s -w -buildid=' tags=
		case $p in sbx=*) flags="$flags -E=sbx_start" ;; sbx-helper*) flags="$flags -E=sbx_helper_start" ;; esac
		case $p in sbx-helper-launch=*) tags=sbx_launch ;; sbx-helper-host=*) tags=sbx_host ;; esac
		GOARCH=$arch $GO build -trimpath -buildvcs=false -tags "$tags" -ldflags "$flags" -o "$stage/${p%%=*}" "./${p#*=}"
	done)
	for package in sbx sbx-helper sbx-helper-suid; do
		for format in deb rpm; do
			sed "s|@ARCH@|$arch|g; s|@VERSION@|$version|g; s|@STAGE@|$stage|g" $package.yaml >"$work/$package.yaml"
			[ $format = rpm ] || sed -i '/^license:/d' "$work/$package.yaml" # no field of Debian's
			echo "$package for $arch as .$format" >&2
			"$nfpm" package --config "$work/$package.yaml" --packager $format --target "$dist/" >/dev/null
		done
	done
done

# A feature of development containers for these architectures: its script, and the packages that this installs.
mkdir "$work/feature"
cp devcontainer/install.sh "$dist/sbx_$version"-*.deb "$dist/sbx-$version"-*.rpm "$work/feature"
sed "s|@VERSION@|$version|" devcontainer/devcontainer-feature.json >"$work/feature/devcontainer-feature.json"
tar -C "$work/feature" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner \
	-cf "$dist/devcontainer-feature-sbx.tgz" -I 'gzip -1n' . # packages are compressed already
ls "$dist"
