// Package seatbelt says in the language of macOS's sandbox (SBPL) what a plan shows, and reads that language as far as
// it writes it. It is pure and the same on every system: text follows from the planner's places and nothing else. It
// must never decide what is shown. cli calls it.
//
// The language is not documented by Apple. What is used of it stands in sandbox-exec(1), sandbox(7), the profiles in
// /System/Library/Sandbox/Profiles and Apple's Sandbox Guide by fG! (2011). Of the rules for an operation the last that
// matches decides. Paths are those of the object that is reached, links resolved, so a link opens nothing.
package seatbelt
