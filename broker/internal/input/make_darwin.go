package input

// servesRoot says that no root is served here.
func servesRoot(string) bool { return false }
