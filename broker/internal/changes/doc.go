// Package changes reads what the overlays of a session collected and carries it over to the host's files.
// It must never follow a link, leave a layer's directory, or bring a set-user-id bit, a device or a guarded
// name over without being told; and whenever it is killed, each host file is the old one or the new one.
// command shows the changes and asks for them to be applied; nothing else writes to the host on a guest's behalf.
package changes
