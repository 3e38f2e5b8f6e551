// Package agentprofile reads what an agent needs: a small TOML file for each, built in, the person's or the
// organisation's. It must never decide what is shown: a profile becomes rules and settings, which package request
// merges with those of files and options. request calls it.
package agentprofile
