// Command netbench measures a network from inside: how fast bytes come and go, how long a round trip, a connection and a look-up take.
// It must time only what it names, never its own start. selftest/testdata/bench_network.sh runs it in and out of sandboxes, in turn.
package main

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
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

// serve has three ports: one that talks, one that listens, one that repeats.
func serve(addr string) error {
	for port, f := range map[string]func(net.Conn){"5001": talk, "5002": func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }, "5003": func(c net.Conn) { _, _ = io.Copy(c, c) }} {
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

func talk(c net.Conn) {
	buf := make([]byte, 1<<18)
	for {
		if _, err := c.Write(buf); err != nil {
			return
		}
	}
}

// measure prints throughput in MB/s and times in µs.
func measure(label, host string, span time.Duration) error {
	addrs, err := net.LookupHost(host) // once: how long that takes is measured by itself
	if err != nil {
		return err
	}
	host = addrs[0]
	down, err := flow(host, "5001", span, func(c net.Conn, b []byte) (int, error) { return c.Read(b) })
	if err != nil {
		return err
	}
	up, err := flow(host, "5002", span, func(c net.Conn, b []byte) (int, error) { return c.Write(b) })
	if err != nil {
		return err
	}
	c, err := net.Dial("tcp", net.JoinHostPort(host, "5003"))
	if err != nil {
		return err
	}
	defer c.Close()
	one := make([]byte, 1)
	trip, err := median(span, func() error {
		if _, err := c.Write(one); err != nil {
			return err
		}
		_, err := io.ReadFull(c, one)
		return err
	})
	if err != nil {
		return err
	}
	connect, err := median(span, func() error {
		c, err := net.Dial("tcp", net.JoinHostPort(host, "5003"))
		if err == nil {
			c.Close()
		}
		return err
	})
	if err != nil {
		return err
	}
	fmt.Printf("%s\tdown\t%.1f\n%s\tup\t%.1f\n%s\ttrip\t%.1f\n%s\tconnect\t%.1f\n", label, down, label, up, label, trip, label, connect)
	return nil
}

func flow(host, port string, span time.Duration, f func(net.Conn, []byte) (int, error)) (float64, error) {
	c, err := net.Dial("tcp", net.JoinHostPort(host, port))
	if err != nil {
		return 0, err
	}
	defer c.Close()
	buf := make([]byte, 1<<18)
	for warm := time.Now(); time.Since(warm) < span/5; { // windows grow first
		if _, err := f(c, buf); err != nil {
			return 0, err
		}
	}
	begin, total := time.Now(), 0
	for time.Since(begin) < span {
		n, err := f(c, buf)
		if err != nil {
			return 0, err
		}
		total += n
	}
	return float64(total) / 1e6 / time.Since(begin).Seconds(), nil
}

func median(span time.Duration, f func() error) (float64, error) {
	var list []time.Duration
	for begin := time.Now(); time.Since(begin) < span; {
		at := time.Now()
		if err := f(); err != nil {
			return 0, err
		}
		list = append(list, time.Since(at))
	}
	slices.Sort(list)
	return float64(list[len(list)/2].Nanoseconds()) / 1e3, nil
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
