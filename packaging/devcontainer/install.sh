#!/bin/sh
# Installs sbx in the image of a development container, from the package beside this file. Run as root while the image is built.
set -eu
cd "$(dirname "$0")"
case $(uname -m) in
x86_64) deb=amd64 rpm=x86_64 ;;
aarch64) deb=arm64 rpm=aarch64 ;;
*) echo "sbx: there is no package for $(uname -m)" >&2; exit 1 ;;
esac
if command -v dpkg >/dev/null; then
	dpkg -i sbx_*_"$deb".deb
elif command -v rpm >/dev/null; then
	rpm -U --nodeps sbx-*."$rpm".rpm
else
	echo "sbx: neither dpkg nor rpm is here; take an image of Debian, Ubuntu, Fedora or openSUSE" >&2
	exit 1
fi
sbx version
