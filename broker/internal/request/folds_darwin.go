package request

// foldsCase says whether two names in a directory that differ in letter case only may be one: the file system of a Mac
// usually has it so, and to take it for granted guards one name too many elsewhere.
func foldsCase(string) bool { return true }
