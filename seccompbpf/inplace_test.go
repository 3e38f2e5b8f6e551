package seccompbpf

import "testing"

// TestInPlace: without namespaces nothing is reached by a socket, and no process but the caller by its number. The
// control is the usual policy, in which a namespace bounds what the same call reaches.
func TestInPlace(t *testing.T) {
	const one, all = 1, 1<<64 - 1
	for _, c := range []struct {
		what, call string
		args       [6]uint64
		want       Action
	}{
		{"TCP", "socket", [6]uint64{2, 1, 0}, Errno(EACCES)},
		{"a unix socket", "socket", [6]uint64{1, 1, 0}, Errno(EACCES)},
		{"routes", "socket", [6]uint64{16, 3, 0}, Errno(EACCES)},
		{"a pair of datagrams", "socketpair", [6]uint64{1, 2, 0}, Errno(EACCES)},
		{"connecting", "connect", [6]uint64{3, one, 16}, Errno(EACCES)},
		{"a name", "bind", [6]uint64{3, one, 16}, Errno(EACCES)},
		{"an address", "sendto", [6]uint64{3, one, 1, 0, 1 << 32, 16}, Errno(EACCES)},
		{"shared memory", "shmget", [6]uint64{1, 1, 0}, Errno(ENOSYS)},
		{"a queue", "mq_open", [6]uint64{one}, Errno(ENOSYS)},
		{"limits of another", "prlimit64", [6]uint64{4242, 7, one}, Errno(EPERM)},
		{"priority of another", "setpriority", [6]uint64{0, 4242, 19}, Errno(EPERM)},
		{"priority of the user", "setpriority", [6]uint64{2, 0, 19}, Errno(EPERM)},
		{"another's disk", "ioprio_set", [6]uint64{1, 4242, 0}, Errno(EPERM)},
		{"another's processors", "sched_setaffinity", [6]uint64{4242, 8, one}, Errno(EPERM)},
		{"every process", "kill", [6]uint64{all, 9}, Errno(EPERM)},
		{"every process, in half a word", "kill", [6]uint64{1<<32 - 1, 9}, Errno(EPERM)},
	} {
		nr, _ := Number(AMD64, c.call)
		d := Data{Nr: int32(nr), Arch: uint32(AMD64), Args: c.args}
		if a, _ := Decide(Default(AMD64, Toggles{InPlace: true, SignalsLeave: true}), d); a != c.want {
			t.Errorf("%s: %s is %x, want %x", c.what, c.call, a, c.want)
		}
		if a, _ := Decide(Default(AMD64, Toggles{}), d); a != Allow {
			t.Errorf("control, %s: %s is %x in a namespace", c.what, c.call, a)
		}
	}
	for _, c := range []struct {
		what, call string
		args       [6]uint64
	}{
		{"a pair", "socketpair", [6]uint64{1, 1 | 0x80000, 0}}, {"a pair of packets", "socketpair", [6]uint64{1, 5, 0}},
		{"sending on it", "sendto", [6]uint64{3, one, 1, 0, 0, 0}}, {"own limits", "prlimit64", [6]uint64{0, 7, one}},
		{"own priority", "setpriority", [6]uint64{0, 0, 5}}, {"own processors", "sched_setaffinity", [6]uint64{0, 8, one}},
		{"one process", "kill", [6]uint64{4242, 15}}, {"the own group", "kill", [6]uint64{0, 15}},
		{"every process, where Landlock says which", "kill", [6]uint64{all, 9}},
	} {
		nr, _ := Number(AMD64, c.call)
		if a, _ := Decide(Default(AMD64, Toggles{InPlace: true}), Data{Nr: int32(nr), Arch: uint32(AMD64),
			Args: c.args}); a != Allow {
			t.Errorf("%s: %s is %x", c.what, c.call, a)
		}
	}
}
