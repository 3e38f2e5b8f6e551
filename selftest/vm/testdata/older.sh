# Makes of each Debian package in DIR one of an earlier version, with a file that the new one lacks, in DIR/old: sh older.sh DIR
set -eu
cd "$1"
mkdir old
for deb in *.deb; do
	dpkg-deb -R "$deb" old/root
	sed -i -e 's/^Version: .*/Version: 0.0.1-1/' -e 's/(= [^)]*)/(= 0.0.1-1)/' old/root/DEBIAN/control
	sed -i '/^$/d' old/root/DEBIAN/conffiles 2>/dev/null || :
	for doc in old/root/usr/share/doc/*; do echo old >"$doc/of-the-old-version"; done
	[ ! -e old/root/etc/apparmor.d/sbx ] || echo '# of the old version' >>old/root/etc/apparmor.d/sbx
	dpkg-deb --root-owner-group -Znone -b old/root "old/$deb" >/dev/null
	rm -rf old/root
done
