//go:build linux

// Package repositories watches what a session makes and changes in git's repositories, so that git outside runs nothing
// by it: Links keeps indexes from naming what the session made, Left tells at the end what somebody may run, and takes
// it away where that is wished. It must never follow a link, nor run git. live has one of each for a session, and hands
// them to package guard.
package repositories
