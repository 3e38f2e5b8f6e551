// Package mac knows where a Mac keeps what other systems have elsewhere: words for lists, and nothing that decides.
// policy calls it on a Mac, tests everywhere.
package mac

// Secret is a place, with everything below it, and why it is one.
type Secret struct{ Pattern, Reason string }

// Places are what a shipped profile shows on a Mac beside what it shows everywhere: where macOS keeps what others
// have in /usr and /opt.
func Places(profile string) []string {
	system := []string{"?/System/Library", "?/System/Cryptexes", "?/System/iOSSupport",
		"?/System/Volumes/Preboot/Cryptexes", "?/Library/Apple", "?/Library/Developer/CommandLineTools",
		"?/private/var/db/dyld", "?/private/var/db/timezone", "?/private/var/db/xcode_select_link", "?/private/var/select",
		"?/private/etc/localtime"}
	switch profile {
	case "strict":
		return system
	case "moderate":
		return append(system, "?/Applications/Xcode.app", "?/Library/Developer", "?/Library/Frameworks", "?/Library/Java",
			"?/Library/Fonts")
	}
	return nil
}

// Secrets are what is secret on a Mac alone.
func Secrets() []Secret {
	var out []Secret
	for _, x := range [...][2]string{{"Keychains", "passwords and keys"}, {"Cookies", "sessions of web pages"},
		{"Safari", "browser profile"}, {"Mail", "letters"}, {"Messages", "messages"}, {"Accounts", "accounts"},
		{"IdentityServices", "keys of messages"}, {"HTTPStorages", "sessions of web pages"},
		{"Application Support/com.apple.TCC", "what programs may do"},
		{"Application Support/AddressBook", "addresses"}, {"Application Support/CallHistoryDB", "calls"},
		{"Application Support/Google/Chrome", "browser profile"}, {"Application Support/Chromium", "browser profile"},
		{"Application Support/BraveSoftware", "browser profile"}, {"Application Support/Microsoft Edge", "browser profile"},
		{"Application Support/Firefox", "browser profile"}, {"Application Support/Arc", "browser profile"},
		{"Application Support/1Password", "passwords"}, {"Application Support/Bitwarden", "passwords"},
		{"Application Support/Slack", "messages"}, {"Application Support/Signal", "messages"},
		{"Group Containers", "data of desktop programs"}, {"Containers", "data of desktop programs"},
		{"Calendars", "dates"}, {"Biome", "what was done"}, {"Suggestions", "what was typed"}} {
		out = append(out, Secret{Pattern: "~/Library/" + x[0], Reason: x[1]})
	}
	return append(out, Secret{Pattern: "~/.zsh_sessions", Reason: "typed commands"},
		Secret{Pattern: "/Library/Keychains", Reason: "keys of the host"},
		Secret{Pattern: "/private/etc/master.passwd", Reason: "password hashes"},
		Secret{Pattern: "/private/var/db/dslocal", Reason: "password hashes"})
}
