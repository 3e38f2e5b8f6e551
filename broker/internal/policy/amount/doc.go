// Package amount reads how much of something there may be: memory, processor time, time. It must never ask what the
// machine has: a share stays a share. policy checks settings with it, confine makes limits of them.
package amount
