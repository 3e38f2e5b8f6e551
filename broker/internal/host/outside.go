package host

// maxSearched bounds how many processes are looked at for one.
const maxSearched = 256

// Outside finds the process that is called pid inside a sandbox whose process 1 is init: a file system that was made
// there is told its callers like that. 0: it is gone, or a thread.
func Outside(init int, pid uint32) uint32 {
	list := []int{init}
	level := len(PIDs(uint32(init))) - 1 // who has a namespace of its own is called something else there
	for i := 0; i < len(list) && i < maxSearched; i++ {
		if pids := PIDs(uint32(list[i])); level >= 0 && len(pids) > level && pids[level] == int(pid) {
			return uint32(list[i])
		}
		list = append(list, Children(list[i])...)
	}
	return 0
}
