// Package plan holds the Setup: what of a sandbox takes privileges, as sbx-helper is asked for it, and the check of it.
// It must never open a file, ask the kernel, or know a word of policy, and it holds only what the helper links: the
// rest of the Plan, how it is written and what people read of it is package broker/plan. stage carries a Setup out.
package plan
