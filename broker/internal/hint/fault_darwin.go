package hint

// ofFault is about a step in which a sandbox could not be built, and none is built in steps here.
func ofFault(error) string { return "" }
