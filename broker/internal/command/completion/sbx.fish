# fish completion for sbx
function __sbx_complete
	command -q sbx; or return
	set -l words (commandline -opc)
	set -l typed (commandline -ct)
	# what is typed may be quoted, and not to its end
	set -l cur (string unescape -- "$typed"; or string replace -ra '["\'\\\\]' '' -- "$typed")
	set -l out (sbx complete -- $words[2..-1] "$cur" 2>/dev/null)
	set -l prefix (string match -r -- '^--[^=]*=' "$cur")
	set -l path (string replace -r -- '^--[^=]*=' '' "$cur")
	switch "$out[1]"
		case files
			for line in (__fish_complete_path "$path")
				printf '%s%s\n' "$prefix" $line
			end
		case dirs
			for line in (__fish_complete_directories "$path")
				printf '%s%s\n' "$prefix" $line
			end
		case 'command *'
			set -l skip (string replace 'command ' '' -- $out[1])
			set -l rest (string escape -- $words[(math $skip + 1)..-1])
			set -l line (string join ' ' -- $rest "$typed")
			complete -C "$line"
		case words
			if set -q out[2]
				printf '%s\n' $out[2..-1]
			end
	end
end
complete -c sbx -f -a '(__sbx_complete)'
