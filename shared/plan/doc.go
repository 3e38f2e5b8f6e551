// Package plan holds the Plan: the complete, default-free, serialisable description of one sandbox.
// It must never open a file, ask the kernel, or know a word of policy; it only describes and validates.
// planner builds it, stage carries it out, the helper re-validates it, and cli prints it.
package plan
