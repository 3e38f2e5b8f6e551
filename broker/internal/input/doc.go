// Package input turns what was asked for, the settings and the facts about the host into what the planner plans: the
// grants, hides and limits of profile, policy files and options, the environment, the system-call filter. It must not
// make or start anything, nor decide what rules and answers allow. A run calls it, and whoever explains one.
package input
