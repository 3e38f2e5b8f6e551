// Package plan holds the Plan: the complete, default-free, serialisable description of one sandbox. Its part that takes
// privileges is the Setup of shared/plan, whose types have their names here as well.
// It must never open a file, ask the kernel, or know a word of policy; it only describes, checks and spells.
// planner builds it, child carries it out, and cli prints it.
package plan
