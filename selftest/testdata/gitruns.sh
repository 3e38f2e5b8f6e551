# What TestGitRuns does as the ordinary user, in $HOME/project. Below $TOP are rows, and marks, where programs leave their names. A row is
# rows/N/set, commands that make its settings with "git config $@", or rows/N/file, a name, and rows/N/text; and rows/N/shown, what git
# runs it in.
set -eu
PATH=$TOP/bin:$PATH # which has a merge strategy
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b EDITOR=true
local='-c protocol.file.allow=always'

# build makes the project: a clone of a repository of this machine that shares its objects, with a submodule, a branch to merge, a change that
# is not committed, and a repository that lies in it.
build() {
	export GIT_TEMPLATE_DIR= # the fewer files, the faster each row's copy
	git init -q -b main "$TOP/lib"
	cd "$TOP/lib"
	echo 1 >l
	git add .
	git commit -qm lib
	git init -q -b main "$TOP/origin"
	cd "$TOP/origin"
	echo '*.m filter=m diff=m merge=m' >.gitattributes
	echo 1 >f.m
	git add .
	git commit -qm one
	git $local submodule --quiet add "$TOP/lib" sub
	git commit -qm sub
	git checkout -qb other
	echo other >f.m
	git commit -qam other
	git checkout -q main
	git commit -qm third --allow-empty && git branch third && git reset -q --hard HEAD^
	echo 2 >f.m
	git commit -qam two
	git $local clone -q --shared --recurse-submodules "$TOP/origin" "$HOME/project"
	git commit -q --allow-empty -m three
	cd "$HOME/project"
	git branch -q --track other origin/other
	git branch -q third origin/third
	git update-ref refs/tags/attributes "$(printf '100644 blob %s\t.gitattributes\n' "$(echo '* filter=own' | git hash-object -w --stdin)" | git mktree)"
	touch -d '1 year ago' ".git/objects/$(echo nobody has it | git hash-object -w --stdin | sed 's,^..,&/,')"
	git config extensions.worktreeConfig true
	git submodule --quiet init
	echo 3 | tee f.m >sub/l
	git -C sub commit -qam moved
	echo 4 >sub/l
	git worktree add -q "$HOME/tree"
	git -C "$HOME/tree" $local submodule --quiet update --init
	echo 4 >"$HOME/tree/sub/l"
	git $local clone -q "$TOP/lib" nested
	echo 4 >nested/l
	cp -a .git "$TOP/evil"
	printf '[core]\n\tfsmonitor = : >%s/marks/evil; true\n[alias]\n\tm = !: >%s/marks/evil\n' "$TOP" "$TOP" >>"$TOP/evil/config"
	git init -q --bare inside.git
	mkdir inside.git/hooks
	printf '#!/bin/sh\n: >"%s/marks/inside"\n' "$TOP" >inside.git/hooks/pre-receive
	chmod 755 inside.git/hooks/pre-receive
	mkdir repaired
	printf '[filter "own"]\n\tclean = : >%s/marks/own; cat\n' "$TOP" >"$HOME/.gitconfig"
	cp .git/config "$TOP/config"
}

# terminal runs a command on a terminal at which q is typed. Script waits for seconds where its input ends.
terminal() {
	[ -p "$TOP/keys" ] || mkfifo "$TOP/keys"
	{
		echo q >&3
		script -qec "$1" /dev/null <&3
	} 3<>"$TOP/keys"
}

# shown does what git runs a row's program in.
shown() {
	case $1 in
	log) terminal 'git log -1 -p' ;;
	'add -p') terminal 'git add -p' ;;
	commit) git commit -qam m; git commit -q --allow-empty --amend ;;
	mergetool*) git reset -q --hard; git merge -q other; git $1 ;;
	merge* | rebase*) git reset -q --hard; git $1 ;;
	imap-send) git format-patch -1 --stdout HEAD^ | git imap-send ;;
	instaweb*) git config instaweb.httpd && git $1 ;; # a server that is installed would go on
	*) git $1 ;;
	esac <"$TOP/stdin" >>"$TOP/out" 2>&1 || true
}

# place puts a row's file into the project.
place() {
	mkdir -p "$(dirname "$2")" 2>/dev/null
	cat "$1/text" >"$2" 2>/dev/null && chmod 755 "$2"
}

# control makes each row's settings outside, in a copy of the project, and says which are run.
control() {
	mv "$HOME/project" "$TOP/project"
	for row in "$TOP"/rows/*; do
		[ -e "$row/shown" ] || continue
		cp -a "$TOP/project" "$HOME/project"
		cd "$HOME/project"
		set --
		if [ -e "$row/file" ]; then place "$row" "$(cat "$row/file")"; else . "$row/set"; fi
		shown "$(cat "$row/shown")"
		cd "$TOP"
		[ -z "$(ls marks)" ] || echo "ran ${row##*/}"
		rm -rf marks/* "$HOME/project"
	done
	mv "$TOP/project" "$HOME/project"
}

# plant tries to make every row's settings from inside: with git, and by writing and renaming.
plant() {
	for row in "$TOP"/rows/*; do
		if [ -e "$row/file" ]; then
			place "$row" "$(cat "$row/file")" || true
			continue
		fi
		set --
		(. "$row/set") 2>/dev/null || true
		cp .git/config /tmp/config
		(cd / && set -- --file /tmp/config && . "$row/set")
		cat /tmp/config >.git/config.lock
		mv .git/config.lock .git/config 2>/dev/null || rm -f .git/config.lock
		cat /tmp/config 2>/dev/null >.git/config || true
	done
}

# work is a day's work outside.
work() {
	cd "$HOME/project"
	for what in status log diff commit fetch 'gc --auto' 'worktree list' 'worktree repair' '-C repaired status'; do shown "$what"; done
	cat "$TOP"/rows/*/shown | sort -u | while read -r what; do shown "$what"; done
	[ "$(cat repaired/.git)" = "gitdir: $PWD/.git/worktrees/tree" ] || echo "git worktree repair wrote something else"
	ls "$TOP/marks"
}

"$@"
