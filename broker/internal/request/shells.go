package request

// ShellStartup are the files that shells read when they start, and what those lead to. A trailing slash marks a
// directory.
func ShellStartup() []string {
	return []string{"~/.profile", "~/.bashrc", "~/.bash_profile", "~/.bash_login", "~/.bash_logout", "~/.bash_aliases",
		"~/.bash_completion", "~/.zshenv", "~/.zshrc", "~/.zprofile", "~/.zlogin", "~/.zlogout", "~/.aliases",
		"~/.oh-my-zsh/", "~/.oh-my-bash/", "~/.p10k.zsh", "~/.config/zsh/", "~/.config/bash/", "~/.config/fish/",
		"~/.config/nushell/", "~/.config/starship.toml", "~/.local/share/bash-completion/"}
}

// ShellStores are directories in which shells write what they keep: universal variables, histories, completions that
// they have made. They write beside a file and move what they wrote to its place, so it takes the directory.
func ShellStores() []string {
	return []string{"~/.config/fish", "~/.local/share/fish", "~/.config/nushell", "~/.local/share/nushell"}
}

// IsShell says whether a program's name is that of a shell whose files those are.
func IsShell(name string) bool {
	switch name {
	case "bash", "zsh", "fish", "nu":
		return true
	}
	return false
}
