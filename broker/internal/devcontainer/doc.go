// Package devcontainer reads a project's devcontainer.json (containers.dev, the specification's reference of metadata)
// and says what a rootless engine has to be told for it, and what of the file is refused. It must never read the host,
// start anything or know of a policy: the engine runs in a sandbox, which holds whatever the file says. input has the
// sandbox's program be what this package returns.
package devcontainer
