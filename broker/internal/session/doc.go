// Package session keeps the folder of one sandbox: its id, its plan, the transcript of its set-up and
// the writable layers. It must never follow a link that somebody else could have placed, and never
// reuse a folder. live creates sessions, launch writes into them, ls and gc read them.
package session

// Layout of $XDG_STATE_HOME/sbx/sessions/SID, all 0700 and 0600:
//
//	plan.json    the plan as it was carried out
//	log.jsonl    one line for every step with which process 1 made the sandbox: session, pid, op, path
//	lock         locked as long as the broker lives, where the folder itself cannot be
//	status       with what the program ended
//	output       what a detached one has written
//	etc/         hosts and resolv.conf of the sandbox, where they are not in the plan itself
//	overlay/N/   upper and work of layer N, removed at the end
//	dropped/     overlay/ while it is removed; a folder's own name then begins with .removed-
//	overlay/own/ places that the host does not have, each a folder
//	overlay/returned.jsonl  which directories of the host's an interrupted apply has moved and put back
//	overlay/locked.jsonl which modes directories in the layers had that had to be opened up to read them
//	overlay/names.jsonl  which names the host had in the places of layers that stay, and modes of directories
