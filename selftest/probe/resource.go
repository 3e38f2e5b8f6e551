//go:build linux

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// coreLimit wins when a core dump would reach a handler of the host's: with any limit but 1 byte (core(5)). It also
// tries to lower that, as programs do for themselves.
func coreLimit(_ []string) outcome {
	var r unix.Rlimit
	for _, lower := range []bool{false, true} {
		if lower {
			_ = unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{})
			_ = unix.Prlimit(0, unix.RLIMIT_CORE, &unix.Rlimit{}, new(unix.Rlimit))
		}
		if err := unix.Getrlimit(unix.RLIMIT_CORE, &r); err != nil {
			return stopped(err)
		}
		if r.Cur != 1 || r.Max != 1 {
			return won("limits " + itoa(int(r.Cur)) + " and " + itoa(int(r.Max)))
		}
	}
	return nothing("limits 1 and 1")
}

// forks makes N sleeping children (400 at most) and ends them all.
func forks(args []string) outcome {
	want := min(parseInt(arg(args, 0), 100), 400)
	var made []int
	defer func() {
		for _, p := range made {
			_ = unix.Kill(p, unix.SIGKILL)
			_, _ = unix.Wait4(p, nil, 0, nil)
		}
	}()
	for len(made) < want {
		pid, e := fork(true, false)
		if e != 0 {
			o := stopped(e)
			o.Detail = map[string]string{"made": itoa(len(made))}
			return o
		}
		made = append(made, pid)
	}
	return won(itoa(want) + " processes")
}

// memory touches N MiB (1024 at most).
func memory(args []string) outcome {
	want := min(parseInt(arg(args, 0), 64), 1024)
	m, err := unix.Mmap(-1, 0, want<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return stopped(err)
	}
	for i := 0; i < len(m); i += 4096 {
		m[i] = 1
	}
	_ = unix.Munmap(m)
	return won(itoa(want) + " MiB touched")
}

// fill writes N MiB (512 at most) to a new file and removes it. fill DIR N
func fill(args []string) outcome {
	dir := arg(args, 0)
	_ = os.MkdirAll(dir, 0o700)
	p := filepath.Join(dir, "probe-fill")
	f, err := os.Create(p)
	if err != nil {
		return stopped(err)
	}
	defer os.Remove(p)
	defer f.Close()
	chunk := make([]byte, 1<<20)
	want := min(parseInt(arg(args, 1), 16), 512)
	for i := 0; i < want; i++ {
		if _, err := f.Write(chunk); err != nil {
			o := stopped(err)
			o.Detail = map[string]string{"MiB": itoa(i)}
			return o
		}
	}
	return won(itoa(want) + " MiB written")
}

// inodes makes N empty files (300 000 at most) and removes them. inodes DIR N
func inodes(args []string) outcome {
	dir := filepath.Join(arg(args, 0), "probe-inodes")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return stopped(err)
	}
	defer os.RemoveAll(dir)
	want := min(parseInt(arg(args, 1), 1000), 300000)
	for i := 0; i < want; i++ {
		fd, err := unix.Open(dir+"/"+itoa(i), unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
		if err != nil {
			o := stopped(err)
			o.Detail = map[string]string{"files": itoa(i)}
			return o
		}
		unix.Close(fd)
	}
	return won(itoa(want) + " files")
}

// cpu spins in four threads for 0.8 s; more than 0.4 processors on average wins (a busy host still gives four threads
// that much).
func cpu(_ []string) outcome {
	begin := time.Now()
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			for time.Since(begin) < 800*time.Millisecond {
				spin()
			}
		})
	}
	wait.Wait()
	var r unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &r); err != nil {
		return stopped(err)
	}
	used := time.Duration(r.Utime.Nano() + r.Stime.Nano())
	share := float64(used) / float64(time.Since(begin))
	if share > 0.4 {
		return won("used " + itoa(int(share*100)) + "% of a processor")
	}
	return outcome{Errno: "THROTTLED", Detail: map[string]string{"percent": itoa(int(share * 100))}}
}

// bigArgv: huge argument lists and names must work or be refused cleanly.
func bigArgv(args []string) outcome {
	var t tally
	for text, n := range map[string]int{"ten large": 10, "many small": 50000} {
		argv := make([]string, n)
		for i := range argv {
			argv[i] = strings.Repeat("x", 1300000/n)
		}
		err := exec.Command(self(), append([]string{"-host", "corelimit"}, argv...)...).Run()
		if err == nil {
			t.add(text, none)
		} else {
			t.add(text, name(err))
		}
	}
	for _, p := range []string{arg(args, 0) + "/" + strings.Repeat("n", 255), arg(args, 0) + strings.Repeat("/d", 2500)} {
		_, err := os.Stat(p)
		t.err("path of "+itoa(len(p)), err)
	}
	return t.outcome()
}

// maze follows a chain of N links to a file with a canary, and digs a deep directory beside it. maze N
func maze(args []string) outcome {
	const dir = "probe-maze"
	_ = os.RemoveAll(dir)
	defer os.RemoveAll(dir)
	n := min(parseInt(arg(args, 0), 60), 100)
	deep := dir + strings.Repeat("/d", 400)
	if err := os.MkdirAll(deep, 0o700); err != nil {
		return stopped(err)
	}
	if err := os.WriteFile(dir+"/m"+itoa(n), []byte("CANARY\n"), 0o600); err != nil {
		return stopped(err)
	}
	for i := range n {
		if err := os.Symlink("m"+itoa(i+1), dir+"/m"+itoa(i)); err != nil {
			return stopped(err)
		}
	}
	var t tally
	t.read(dir + "/m0")
	return t.outcome()
}

// sysvShm looks for the host's shared memory by key.
func sysvShm(args []string) outcome {
	_, err := unix.SysvShmGet(parseInt(arg(args, 0), 0), 1, 0)
	var t tally
	t.err("shmget", err)
	return t.outcome()
}
