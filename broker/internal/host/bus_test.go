package host

import "testing"

// TestSessionBus: addresses that start programs are not used, wherever in a list they stand.
func TestSessionBus(t *testing.T) {
	for address, want := range map[string]bool{"unix:path=/run/bus": true, "unix:abstract=/tmp/x": true,
		"unix:path=/run/bus;unix:abstract=x": true, "unixexec:path=/bin/sh": false,
		"unix:path=/run/bus;unixexec:path=/bin/sh": false, "tcp:host=localhost,port=1": false, "autolaunch:": false,
		"unix:path=/run/bus;": false} {
		got, err := SessionBus([]string{"DBUS_SESSION_BUS_ADDRESS=" + address})
		if (err == nil && got == address) != want {
			t.Errorf("%q: %q, %v", address, got, err)
		}
	}
	if got, err := SessionBus([]string{"HOME=/"}); got != "" || err != nil {
		t.Errorf("no bus: %q, %v", got, err)
	}
}
