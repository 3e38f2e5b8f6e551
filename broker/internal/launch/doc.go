// Package launch starts a Plan, in this process or through sbx-helper or bubblewrap, and looks after what runs:
// descriptors, terminal, signals, time-out, exit status, tear-down; also programs that are started later in the same
// sandbox, and without one. It also has sbx-helper and sbx-host do what sbx does not do itself, and finds sbx-proxy for
// credential and policycmd. It must never decide what is in the sandbox; the Plan says everything. live calls it, once
// per sandbox; hint, command, cli and sandbox read its errors, confine asks it for a cgroup, input what the
// descriptors are, attend what is a terminal, and egress waits for what it runs. held starts macOS's sandbox-exec with
// it: what is not Linux's alone (Outside, terminals, errors) is the same on both systems.
package launch
