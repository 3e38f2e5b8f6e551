//go:build linux

// Package gate says what of the host a sandbox may be asked for, and joins the engines that notice such an access with
// the one place that decides: Files with the root that gatefs serves, Mounts with the notification engine. How much of
// an allowed path is shown, and whether it can be, is decided here. It must never call a hidden thing askable, nor hand
// an engine more than the verdict says. A run makes a View of the plan, chooses an engine and gives it a Session;
// neither knows humans, nor the command line.
package gate
