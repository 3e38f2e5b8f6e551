// Package arbiter is the one place where an access that the mounts do not settle comes to an end: it decides by rule,
// asks the human, remembers and stores the answer, and writes down what became of it, for whichever engine asks. It
// must never let anything happen that it could not record, grant more than the question showed, or wait without an end.
// Engines (files, network) call Ask; live makes one for each session and connects terminal, socket, watchers and policy
// files.
package arbiter
