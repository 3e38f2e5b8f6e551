# What TestCompletion has an interactive zsh read: what a completion adds is printed, a word a line.
PS1=
unsetopt zle_bracketed_paste
autoload -Uz compinit
compinit -D -u
source $COMPLETION
compadd() {
	if (( ${@[(I)-[OAD]]} )); then
		builtin compadd "$@"
		return
	fi
	local -a hits
	builtin compadd -A hits "$@"
	(( $#hits )) && print -l -- "WORD "$^hits
	builtin compadd "$@"
}
all() {
	_main_complete
	print -- "E""ND"
	compstate[insert]= compstate[list]=
}
zle -C all complete-word all
bindkey '^X' all
print -- "REA""DY"
