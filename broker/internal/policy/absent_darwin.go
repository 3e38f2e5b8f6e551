package policy

// absent says that nobody knows without asking the file system.
func absent(string, string) bool { return false }
