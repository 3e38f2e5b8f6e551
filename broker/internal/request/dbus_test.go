package request

import (
	"strings"
	"testing"
)

// TestBusRefused: services that start programs or hold secrets are refused by their names, in each version and with
// what belongs to them; names that only look alike are not.
func TestBusRefused(t *testing.T) {
	for name, refused := range map[string]bool{
		"org.kde.klauncher": true, "org.kde.klauncher5": true, "org.kde.kwalletd": true, "org.kde.kwalletd5": true,
		"org.kde.kwalletd6": true, "org.kde.kwalletd7.Sub": true, "org.kde.secretservicecompat": true,
		"org.freedesktop.systemd1": true, "org.freedesktop.systemd1.Manager": true, "org.freedesktop.login1": true,
		"org.gnome.Shell": true, "org.gnome.Shell2": true, "org.gnome.Shell.Extensions": true, "org.freedesktop.DBus": true,
		"ca.desrt.dconf": true, "org.gtk.vfs.Daemon": true, "org.freedesktop.FileManager1": true, "org.kde.krunner": true,
		"org.kde.konsole": true, "org.kde.kded6": true, "org.gnome.Console": true, "org.a11y.Bus": true,
		"org.keepassxc.KeePassXC.MainWindow": true, "org.kde.kdeconnect": false, "org.gtk.Settings": false,
		"org.gnome.ShellSearch": false, "org.gnome.Mutter.IdleMonitor": false, "org.example.org.gnome.Shell": false,
		"org.kde": false, "org.freedesktop": false, "org.freedesktop.Notifications": false,
	} {
		var r Request
		if err := r.setDBus("org.example.Tool," + name); (err != nil) != refused || BusRefused(name) != refused {
			t.Errorf("%s: %v", name, err)
		} else if refused && !strings.Contains(err.Error(), name+" starts programs outside the sandbox or holds secrets") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
