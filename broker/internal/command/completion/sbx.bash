# bash completion for sbx
_sbx() {
	local cur=${COMP_WORDS[COMP_CWORD]} quote=
	local -a lines
	COMPREPLY=()
	case $cur in
	[\"\']*) quote=${cur:0:1} cur=${cur:1} ;;
	*) cur=${cur//\\/} ;;
	esac
	mapfile -t lines < <(sbx complete -- "${COMP_WORDS[@]:1:COMP_CWORD-1}" "$cur" 2>/dev/null)
	case ${lines[0]-} in
	words) _sbx_words "${lines[@]:1}" ;;
	files)
		compopt -o filenames 2>/dev/null
		mapfile -t COMPREPLY < <(compgen -f -- "${cur#=}")
		;;
	dirs)
		compopt -o filenames 2>/dev/null
		mapfile -t COMPREPLY < <(compgen -d -- "${cur#=}")
		;;
	command\ *) _sbx_command "${lines[0]#command }" ;;
	esac
}
# bash puts words into the line as they are, so each is quoted as the line has it there.
_sbx_words() {
	local word
	for word; do
		word=${word%%$'\t'*}
		case $quote in
		\') word=${word//\'/\'\\\'\'} ;;
		\") word=${word//\\/\\\\} word=${word//\"/\\\"} word=${word//\$/\\\$} word=${word//\`/\\\`} ;;
		*) printf -v word %q "$word" ;;
		esac
		COMPREPLY+=("$word")
	done
}
# The command line that begins at word $1 is somebody else's.
_sbx_command() {
	if declare -F _command_offset >/dev/null; then
		_command_offset "$1"
	elif [ "$1" = "$COMP_CWORD" ]; then
		mapfile -t COMPREPLY < <(compgen -c -- "${COMP_WORDS[COMP_CWORD]}")
	else
		compopt -o filenames 2>/dev/null
		mapfile -t COMPREPLY < <(compgen -f -- "${COMP_WORDS[COMP_CWORD]}")
	fi
}
complete -F _sbx sbx
