//go:build linux

// Command netbench measures a network from inside: how fast bytes come and go, how long a round trip, a connection and
// a look-up take. It must time only what it names, never its own start. selftest/testdata/bench_network.sh runs it in
// and out of sandboxes, in turn.
package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "netbench:", err)
		os.Exit(1)
	}
}

const usage = "netbench serve ADDR | measure LABEL ADDR SECONDS | dns LABEL NAME COUNT"

func run(args []string) error {
	switch {
	case len(args) == 2 && args[0] == "serve":
		return serve(args[1])
	case len(args) == 4 && args[0] == "measure":
		secs, err := strconv.ParseFloat(args[3], 64)
		if err != nil {
			return err
		}
		return measure(args[1], args[2], time.Duration(secs*float64(time.Second)))
	case len(args) == 4 && args[0] == "dns":
		n, err := strconv.Atoi(args[3])
		if err != nil {
			return err
		}
		return lookups(args[1], args[2], n)
	}
	return fmt.Errorf("usage: %s", usage)
}

// serve has four ports: one that talks, one that listens, one that repeats, one that counts processor time.
func serve(addr string) error {
	for port, f := range map[string]func(net.Conn){"5001": talk, "5002": func(c net.Conn) {
		_, _ = io.Copy(io.Discard,
			c)
	}, "5003": func(c net.Conn) { _, _ = io.Copy(c, c) }, meter: count} {
		l, err := net.Listen("tcp", net.JoinHostPort(addr, port))
		if err != nil {
			return err
		}
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				go func() { f(c); c.Close() }()
			}
		}()
	}
	fmt.Println("ready")
	select {}
}

// meter is the port that counts. Only the server sees all processes of a path: its own, the carrier, the sandbox.
const meter = "5004"

// count takes a line with a label and one with a number, and says how much processor time all processes that it sees
// took for each of that many.
func count(c net.Conn) {
	r := bufio.NewReader(c)
	label, err := r.ReadString('\n')
	if err != nil {
		return
	}
	before := used()
	_, _ = c.Write([]byte{1})
	text, err := r.ReadString('\n')
	after := used()
	n, bad := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil || bad != nil || n <= 0 {
		return
	}
	_, _ = fmt.Fprintf(c, "%s\t%.3f\n", strings.TrimSpace(label), float64(total(before, after))/1e3/n)
}

// used is how many nanoseconds each thread has had a processor (schedstat, proc(5)).
func used() map[string]int64 {
	out := map[string]int64{}
	list, _ := filepath.Glob("/proc/[0-9]*/task/*/schedstat")
	for _, f := range list {
		b, _ := os.ReadFile(f)
		if ns, _, ok := strings.Cut(string(b), " "); ok {
			out[f], _ = strconv.ParseInt(ns, 10, 64)
		}
	}
	return out
}

func total(before, after map[string]int64) (ns int64) {
	for f, n := range after {
		ns += n - before[f]
	}
	return ns
}

// metered does f, which says how often it has done something, and prints the processor time of each.
func metered(label, host string, f func() (float64, error)) error {
	c, err := net.Dial("tcp", net.JoinHostPort(host, meter))
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := fmt.Fprintf(c, "%s\n", label); err != nil {
		return err
	}
	if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
		return err
	}
	n, err := f()
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(c, "%f\n", n); err != nil {
		return err
	}
	_, err = io.Copy(os.Stdout, c)
	return err
}

func talk(c net.Conn) {
	buf := make([]byte, 1<<18)
	for {
		if _, err := c.Write(buf); err != nil {
			return
		}
	}
}

// measure prints throughput in MB/s, times in µs, and the processor time of everybody for each in µs.
func measure(label, host string, span time.Duration) error {
	addrs, err := net.LookupHost(host) // once: how long that takes is measured by itself
	if err != nil {
		return err
	}
	host = addrs[0]
	for name, port := range map[string]string{"down": "5001", "up": "5002"} {
		way := net.Conn.Read
		if name == "up" {
			way = net.Conn.Write
		}
		if err := flow(label+"\t"+name, host, port, span, way); err != nil {
			return err
		}
	}
	c, err := net.Dial("tcp", net.JoinHostPort(host, "5003"))
	if err != nil {
		return err
	}
	defer c.Close()
	one := make([]byte, 1)
	if err := quick(label+"\ttrip", host, span, func() error {
		if _, err := c.Write(one); err != nil {
			return err
		}
		_, err := io.ReadFull(c, one)
		return err
	}); err != nil {
		return err
	}
	return quick(label+"\tconnect", host, span, func() error {
		c, err := net.Dial("tcp", net.JoinHostPort(host, "5003"))
		if err == nil {
			c.Close()
		}
		return err
	})
}

func flow(label, host, port string, span time.Duration, f func(net.Conn, []byte) (int, error)) error {
	c, err := net.Dial("tcp", net.JoinHostPort(host, port))
	if err != nil {
		return err
	}
	defer c.Close()
	buf := make([]byte, 1<<18)
	for warm := time.Now(); time.Since(warm) < span/5; { // windows grow first
		if _, err := f(c, buf); err != nil {
			return err
		}
	}
	return metered(label+" cpu", host, func() (float64, error) {
		begin, total := time.Now(), 0
		for time.Since(begin) < span {
			n, err := f(c, buf)
			if err != nil {
				return 0, err
			}
			total += n
		}
		fmt.Printf("%s\t%.1f\n", label, float64(total)/1e6/time.Since(begin).Seconds())
		return float64(total) / 1e6, nil
	})
}

// quick prints the time that a tenth of the tries stays below: other work of the machine lengthens the rest.
func quick(label, host string, span time.Duration, f func() error) error {
	return metered(label+" cpu", host, func() (float64, error) {
		var list []time.Duration
		for begin := time.Now(); time.Since(begin) < span; {
			at := time.Now()
			if err := f(); err != nil {
				return 0, err
			}
			list = append(list, time.Since(at))
		}
		slices.Sort(list)
		fmt.Printf("%s\t%.1f\n", label, float64(list[len(list)/10].Nanoseconds())/1e3)
		return float64(len(list)), nil
	})
}

// lookups asks the name server of resolv.conf for the addresses of a name, again and again.
func lookups(label, name string, count int) error {
	b, err := os.ReadFile("/etc/resolv.conf")
	if err != nil {
		return err
	}
	_, rest, _ := strings.Cut(string(b), "nameserver ")
	server, _, _ := strings.Cut(rest, "\n")
	c, err := net.Dial("udp", net.JoinHostPort(strings.TrimSpace(server), "53"))
	if err != nil {
		return err
	}
	defer c.Close()
	query := []byte{0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0}
	for part := range strings.SplitSeq(name, ".") {
		query = append(append(query, byte(len(part))), part...)
	}
	query = append(query, 0, 0, 1, 0, 1)
	answer := make([]byte, 4096)
	var list []time.Duration
	for i := range count {
		binary.BigEndian.PutUint16(query, uint16(i))
		at := time.Now()
		if _, err := c.Write(query); err != nil {
			return err
		}
		_ = c.SetReadDeadline(at.Add(10 * time.Second))
		n, err := c.Read(answer)
		if err != nil || n < 12 || answer[3]&15 != 0 {
			return fmt.Errorf("no answer about %s: %w", name, err)
		}
		list = append(list, time.Since(at))
	}
	slices.Sort(list)
	us := func(i int) float64 { return float64(list[i].Nanoseconds()) / 1e3 }
	fmt.Printf("%s\tdns\t%.1f\n%s\tdns99\t%.1f\n", label, us(count/2), label, us(count*99/100))
	return nil
}
