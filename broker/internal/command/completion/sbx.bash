# bash completion for sbx
_sbx() {
	local cur=${COMP_WORDS[COMP_CWORD]}
	local -a lines
	COMPREPLY=()
	mapfile -t lines < <(sbx complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
	case ${lines[0]-} in
	words) COMPREPLY=("${lines[@]:1}") COMPREPLY=("${COMPREPLY[@]%%$'\t'*}") ;;
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
