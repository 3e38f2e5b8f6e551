// Package launch starts a Plan, in this process or through sbx-helper, and looks after what runs: descriptors, terminal, signals,
// time-out, exit status, tear-down; also programs that are started later in the same sandbox, and without one. It must never decide what
// is in the sandbox; the Plan says everything. cli calls it, once per sandbox; command reads its
// errors, confine asks it for a control group, and
// input what the descriptors are; egress waits for what it runs.
package launch
