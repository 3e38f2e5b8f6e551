package guard

// Disposable says whether tools delete and make anew directories of this name.
func Disposable(name string) bool {
	switch name {
	case "node_modules", "target", "dist", "build", "out", "bin", "obj", "coverage", "tmp", "temp", "venv", ".venv",
		"__pycache__", ".tox", ".next", ".nuxt", ".cache", ".gradle", ".mypy_cache", ".pytest_cache", ".ruff_cache",
		"htmlcov", "_build", "cmake-build-debug", "cmake-build-release":
		return true
	}
	return false
}
