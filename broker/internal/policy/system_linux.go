package policy

// systemPlaces are what a shipped profile shows on this system alone.
func systemPlaces(string) []string { return nil }

// systemSecrets are what is secret on this system alone.
func systemSecrets() []Secret { return nil }
