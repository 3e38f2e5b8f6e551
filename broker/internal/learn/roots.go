package learn

import "strings"

// root is a toolchain's directory.
type root struct{ path, what string }

// homeRoots lie below the home directory.
func homeRoots() []root {
	return []root{
		{".cargo", "Rust toolchain"}, {".rustup", "Rust toolchain"}, {"go", "Go toolchain"}, {"sdk", "Go toolchain"},
		{".config/go", "Go toolchain"},
		{".nvm", "Node toolchain"}, {".npm", "Node packages"}, {".npm-global", "Node packages"},
		{".volta", "Node toolchain"}, {".fnm", "Node toolchain"}, {".local/share/fnm", "Node toolchain"},
		{".bun", "Bun toolchain"}, {".deno", "Deno toolchain"}, {".yarn", "Node packages"}, {".local/share/pnpm",
			"Node packages"},
		{".pyenv", "Python toolchain"}, {".rye", "Python toolchain"}, {".local/lib", "Python packages"}, {".local/share/uv",
			"Python toolchain"}, {".local/share/pipx", "Python programs"},
		{".local/pipx", "Python programs"}, {".local/share/virtualenvs", "Python environments"}, {"miniconda3", "Conda"},
		{"anaconda3", "Conda"}, {".conda", "Conda"},
		{".rbenv", "Ruby toolchain"}, {".gem", "Ruby packages"}, {".sdkman", "Java toolchain"}, {".jenv", "Java toolchain"},
		{".m2", "Java packages"}, {".gradle", "Java packages"},
		{".ghcup", "Haskell toolchain"}, {".cabal", "Haskell packages"}, {".stack", "Haskell packages"},
		{".opam", "OCaml toolchain"}, {".nimble", "Nim packages"},
		{".dotnet", ".NET toolchain"}, {".nuget", ".NET packages"}, {".elan", "Lean toolchain"},
		{".juliaup", "Julia toolchain"}, {".julia", "Julia packages"},
		{".asdf", "toolchains of asdf"}, {".local/share/mise", "toolchains of mise"}, {".nix-profile", "Nix profile"},
		{".foundry", "Foundry toolchain"}, {".local/bin", "programs"},
		{".vim", "editor settings"}, {".config/nvim", "editor settings"}, {".local/share/nvim", "editor plugins"},
		{".emacs.d", "editor settings"}, {".oh-my-zsh", "shell settings"},
	}
}

// roots are the toolchains that this tree of paths has something of.
func (w *writer) roots(reads *node) []root {
	var out []root
	if home := w.o.Vars.Home; home != "" {
		for _, r := range homeRoots() {
			out = append(out, root{home + "/" + r.path, r.what})
		}
	}
	for _, top := range []string{"opt", "snap"} { // one rule for each thing that is installed there
		if n := reads.children[top]; n != nil {
			for _, name := range n.names() {
				if len(n.children[name].children) > 0 {
					out = append(out, root{"/" + top + "/" + name, "installed: " + strings.ToValidUTF8(name, "?")})
				}
			}
		}
	}
	if n := reads.children["nix"]; n != nil && n.children["store"] != nil {
		out = append(out, root{"/nix/store", "Nix store"})
	}
	return out
}
