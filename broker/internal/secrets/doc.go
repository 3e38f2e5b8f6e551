// Package secrets finds out whether a file in a tree that is shown is somebody's secret. What names and contents mean
// is package guard's to say; here it is read what a name leaves open: the contents, whether git has them, and whether
// the sandbox made the file itself. It must never show what it reads to anybody, follow a link, or change anything but
// its own record. It is called by planner, by the engines of package gate and by live, so that a run, its answers and
// sbx why judge alike.
package secrets
