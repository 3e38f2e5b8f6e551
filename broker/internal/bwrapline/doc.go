// Package bwrapline writes a Plan in the words of bubblewrap (bwrap(1)), and says what those cannot say. It is the
// opposite of package bwrap, which reads them. It must never look at the host, start anything, or decide what is in a
// sandbox: the Plan does. planner calls it for the plan of the backend bwrap, cli for the line that --dry-run prints.
package bwrapline
