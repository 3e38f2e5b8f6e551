// Package client speaks to the running sessions of this user: it starts programs in them, follows their events, answers
// their questions and ends them. It must never do anything that docs/protocol.md does not offer to every program of the
// user's. The commands sbx exec, attach, kill, freeze, ps and stats are made with it; ls, watch and approve, which
// look at all sessions, with what lies below it.
package client
