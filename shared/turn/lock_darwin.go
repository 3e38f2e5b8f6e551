package turn

import "os"

// lock has nobody to wait for: no session has logins here.
func lock(*os.File, int64) (bool, error) { return true, nil }

func unlock(*os.File, int64) error { return nil }
