// Package tomlscan finds where in a TOML file each statement stands, and refuses what would be dear to read. It must
// never say what a statement means. policy reads its files through it.
package tomlscan
