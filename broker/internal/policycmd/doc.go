// Package policycmd holds the commands about policy and configuration files: policy, config and init. They show, check,
// compare and change what the files say, and pin a project's. It must never read or write such a file by itself, which
// policy does, nor start a sandbox. cli has its rows in the table of commands.
package policycmd
