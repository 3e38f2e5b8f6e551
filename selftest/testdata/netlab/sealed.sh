# sealed STORE: the key of sealed secrets, as it is after the first "sbx secret add", under the passphrase that typed.py types. For who
# does not test how a key is made: this one is sealed and opened for a thousandth of the work that sbx wants (json_secrets).
sealed() {
	as mkdir -p -m 700 "$1"
	echo age1qumftgx23pasc8m0x0w3hpphqcdzn3e3p40h8cad9dsu8s3xyc7qe6q93p >"$1/public"
	base64 -d >"$1/key" <<'!'
YWdlLWVuY3J5cHRpb24ub3JnL3YxCi0+IHNjcnlwdCBIZXNEY3RmbTNmVFN4c3RHSTJ2aS9BIDgK
UHNsdnVpZjc0b2JjUEdiYkRRamRMZVZsUkd5OWtYM0JPMThFVW4rcEFUZwotLS0gcER0QXk5bWdt
UUJicjdaTmVSUlZCcEZHSEtOT0MveWc3WDlPcGloTEN4cwpYDeXP+jiTxeMMkCLfg09mkLj8vamq
WtBQ66k85VxclMU3Mo4ME0nYbMfojUnv4KAS6Lc7riEaubQhQ45ho+zRkPYvkSxQasLDU7wKFwgA
upkxGfogbKCcMpHdg9koQPE5Ga/ijCpZ5X7P
!
	chmod 600 "$1/key" "$1/public"
	chown "$uid:$uid" "$1/key" "$1/public"
	as python3 "$here/typed.py" sbx secret unlock
}
