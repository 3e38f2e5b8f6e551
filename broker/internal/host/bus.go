package host

import (
	"fmt"
	"strings"
)

// SessionBus is the address of the caller's session bus; "" is none. Only sockets are used: other addresses can start
// programs.
func SessionBus(env []string) (string, error) {
	list := Lookup(env, "DBUS_SESSION_BUS_ADDRESS")
	if list == "" {
		return "", nil
	}
	for a := range strings.SplitSeq(list, ";") {
		if !strings.HasPrefix(a, "unix:path=") && !strings.HasPrefix(a, "unix:abstract=") {
			return "", fmt.Errorf("DBUS_SESSION_BUS_ADDRESS is %+q, and only sockets (unix:path=, unix:abstract=) are used",
				list)
		}
	}
	return list, nil
}
