// Package client speaks to the running sessions of this user: it starts programs in them, follows their events, answers
// their questions and ends them. It must never do anything that docs/protocol.md does not offer to every program of the
// user's. The commands sbx exec, attach, ls, kill, stats, watch and approve are made with it.
package client
