#!/bin/sh
# Shows each question as a notification of the desktop, with buttons that answer it once:
#     sbx run --prompt-command 'sh /usr/share/doc/sbx/examples/ask-desktop.sh' -- agent
# Needs notify-send 0.8 or newer (libnotify). A notification that nobody touches leaves the question to the terminal,
# sbx watch and sbx approve: it goes before the minute is over after which silence means no.
# So does a question about a secret, which takes more than a button.
[ -z "$SBX_QUESTION_SECRET" ] || exit 0
answer=$(timeout 50 notify-send --app-name=sbx --urgency=critical --action=allow='Allow once' --action=deny=Deny \
	"sbx $SBX_QUESTION_SID" "$SBX_QUESTION_MARKUP") || answer=
case $answer in
allow | deny) echo "$answer" ;;
esac
