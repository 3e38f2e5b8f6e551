package guard

// Home are rules about what the person's login session, or a program that the person starts, runs by itself in a home.
// They are relative to that. Each is about one place with all that is below it. What is a secret at the same time is
// package policy's, and what has the same meaning in any directory is in BuiltIn.
func Home() []Rule {
	return append(append(make([]Rule, 0, 384), homeSession()...), homePrograms()...)
}

func inHome(out []Rule, why string, patterns ...string) []Rule {
	for _, p := range patterns {
		out = append(out, Rule{Pattern: p, Action: Guard, Why: why})
	}
	return out
}

// homeSession are what the login session, the desktop and shells run by themselves, and where they find programs.
func homeSession() (out []Rule) {
	add := func(why string, patterns ...string) { out = inHome(out, why, patterns...) }
	add("your login session starts it", ".config/systemd", ".local/share/systemd/user", ".config/autostart",
		".config/autostart-scripts", ".config/plasma-workspace", ".config/environment.d", ".pam_environment",
		".local/share/dbus-1", ".xinitrc", ".xprofile", ".xsession", ".xsessionrc", ".xserverrc", ".config/i3",
		".i3", ".config/sway", ".config/hypr", ".config/niri", ".config/river", ".config/labwc",
		".config/openbox", ".config/awesome", ".config/bspwm", ".config/sxhkd", ".config/qtile",
		".config/xmonad", ".xmonad", ".config/waybar", ".config/polybar", ".config/user-dirs.dirs",
		".config/dconf", ".config/xfce4", ".config/gtk-2.0", ".config/gtk-3.0", ".gtkrc-2.0", ".config/pulse",
		".config/pipewire", ".config/wireplumber", ".config/kglobalshortcutsrc", ".config/khotkeysrc", ".config/dunst",
		".config/swayidle", ".config/kanshi", ".config/uwsm", ".config/cosmic", ".Xresources", ".Xdefaults")
	add("the desktop runs what it names", ".local/share/applications", ".config/mimeapps.list",
		".local/share/kio/servicemenus", ".local/share/gnome-shell/extensions", ".local/share/cinnamon",
		".local/share/plasma", ".local/share/kwin", ".local/share/nautilus/scripts", ".local/share/nautilus-python",
		".mailcap")
	add("a shell runs it", ".profile", ".bash_profile", ".bash_login", ".bash_logout", ".bashrc", ".bashrc.d",
		".bash_aliases", ".bash_completion", ".bash_completion.d", ".config/bash",
		".local/share/bash-completion", ".zshenv", ".zprofile", ".zshrc", ".zlogin", ".zlogout", ".zfunc",
		".oh-my-zsh", ".config/zsh", ".local/share/zsh/site-functions", ".config/fish",
		".local/share/fish/vendor_*", ".config/nushell", ".config/powershell", ".kshrc", ".mkshrc", ".cshrc",
		".tcshrc", ".login", ".logout", ".inputrc", ".config/readline", ".config/starship.toml", ".direnvrc",
		".config/direnv", ".config/mise", ".cargo/env", ".lessfilter", ".lesskey",
		".zcompdump*", ".cache/zcompdump*", ".cache/zsh", ".cache/oh-my-zsh", ".cache/p10k-*", ".cache/gitstatus",
		".p10k.zsh", ".fzf", ".fzf.bash", ".fzf.zsh", ".zplug", ".zinit", ".local/share/zinit", ".antigen", ".antidote",
		".cache/antidote", ".zim", ".zprezto", ".zgenom", ".bash_it", ".oh-my-bash", ".local/share/omf",
		".local/share/fish/generated_completions", ".cache/fish/generated_completions", ".xonshrc", ".config/xonsh",
		".config/elvish", ".elvish", ".nvm/nvm.sh", ".nvm/bash_completion", ".sdkman/bin", ".sdkman/src", ".rvm/scripts",
		".asdf/asdf.sh", ".asdf/lib", ".opam/opam-init", ".ghcup/env", ".deno/env", ".elan/env", ".config/broot/launcher",
		".config/envman")
	add("programs are found there (PATH)", ".local/bin", "bin", ".bin", ".cargo/bin", "go/bin",
		".npm-global/bin", ".yarn/bin", ".bun/bin", ".deno/bin", ".volta/bin", ".pyenv/bin", ".pyenv/shims",
		".rbenv/bin", ".rbenv/shims", ".nodenv/bin", ".nodenv/shims", ".goenv/bin", ".goenv/shims", ".asdf/bin",
		".asdf/shims", ".local/share/mise/shims", ".dotnet/tools", ".ghcup/bin", ".cabal/bin", ".nimble/bin",
		".elan/bin", ".juliaup/bin", ".foundry/bin", ".krew/bin", ".config/composer/vendor/bin", ".nix-profile",
		".local/share/pnpm", ".pixi/bin", ".rye/shims", ".proto/bin", ".proto/shims", ".local/share/coursier/bin",
		".lmstudio/bin", ".rd/bin", ".pulumi/bin", ".fly/bin", ".swiftly/bin", ".local/share/swiftly/bin")
	add("programs of sbx's own, found first (PATH)", ".local/share/sbx")
	return out
}

// homePrograms are what programs run that a person starts.
func homePrograms() (out []Rule) {
	add := func(why string, patterns ...string) { out = inHome(out, why, patterns...) }
	add("python runs it whenever it starts", ".local/lib/python*/site-packages/*.pth",
		".local/lib/python*/site-packages/sitecustomize*", ".local/lib/python*/site-packages/usercustomize*")
	add("an editor runs it", ".config/nvim", ".local/share/nvim/site", ".local/share/nvim/lazy", ".config/vim",
		".emacs", ".emacs.d", ".config/emacs", ".spacemacs", ".spacemacs.d", ".doom.d", ".config/doom",
		".config/helix", ".config/kak", ".config/micro", ".config/zed", ".config/Code/User",
		".config/VSCodium/User", ".config/Cursor/User", ".vscode-server", ".config/JetBrains",
		".config/sublime-text", ".nanorc", ".config/nano", ".cache/nvim/luac", ".local/share/nvim/mason",
		".config/Windsurf/User", ".config/Code - OSS/User", ".config/Code - Insiders/User", ".vscode-oss",
		".vscode-insiders", ".cursor-server", ".windsurf-server", ".local/share/code-server",
		".local/share/JetBrains")
	add("a terminal runs what it names", ".tmux.conf", ".tmux", ".config/tmux", ".screenrc", ".config/zellij",
		".config/kitty", ".config/alacritty", ".config/wezterm", ".wezterm.lua", ".config/foot",
		".config/ghostty")
	add("a tool runs what it names", ".config/git", ".config/lazygit", ".tigrc", ".config/tig", ".config/jj",
		".jjconfig.toml", ".hgrc", ".config/hg", ".cargo/config", ".cargo/config.toml", ".config/go",
		".config/containers", ".docker/cli-plugins", ".local/share/helm/plugins", ".config/k9s", ".config/nix",
		".gradle/init.d", ".gradle/init.gradle", ".gradle/init.gradle.kts", ".m2/extensions.xml", ".mavenrc",
		".condarc", ".bundle/config", ".bundle/plugin", ".gemrc", ".bunfig.toml", ".config/pnpm",
		".ipython/profile_*/startup", ".ipython/profile_*/*.py", ".ipython/extensions", ".jupyter/jupyter_*",
		".config/gdb", ".sqliterc", ".psqlrc", ".muttrc", ".mutt", ".config/mutt", ".config/neomutt", ".mailrc",
		".forward", ".procmailrc", ".config/ranger", ".config/lf", ".config/yazi", ".config/vifm", ".config/mc",
		".config/mpv", ".config/newsboat", ".newsboat", ".msmtprc", ".config/msmtp", ".mbsyncrc", ".offlineimaprc",
		".notmuch-config", ".config/notmuch", ".config/aerc", ".config/espanso")
	add("settings and servers of an agent", ".config/Claude", ".config/opencode", ".config/goose",
		".config/crush", ".config/amp")
	return out
}
