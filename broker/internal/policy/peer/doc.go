// Package peer names who a sandbox may speak with: hosts, and patterns of hosts and ports that a rule is about.
// It must never resolve a name or open a connection. Rules are made of its patterns; what decides about connections
// matches them.
package peer
