//go:build linux

package main

import (
	"encoding/binary"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// refused is the answer of a filter that speaks the protocol.
const refused = "REFUSED"

func dialService(path string) (net.Conn, error) {
	c, err := net.DialTimeout("unix", path, 5*time.Second)
	if err == nil {
		_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	}
	return c, err
}

// agentOps sends requests to the SSH agent: a signature of what is no commit, or one by its number. What is not
// answered with a failure was done.
func agentOps(requests []string) outcome {
	var t tally
	at := "/run/ssh-agent.sock" // where the sandbox has it, whatever the environment says
	if _, err := os.Lstat(at); err != nil {
		at = os.Getenv("SSH_AUTH_SOCK")
	}
	if at == "" {
		return stopped(unix.ENOENT)
	}
	for _, r := range requests {
		n, err := strconv.Atoi(r)
		if err != nil {
			return skipped("agentops", "not a number: "+r)
		}
		m := []byte{byte(n), 0, 0, 0, 0}
		if n == 11 { // list keys
			m = m[:1]
		}
		if n == 13 { // the one key of the lab, data, flags
			m = append([]byte{13, 0, 0, 0, 1, 'k', 0, 0, 0, 4}, "data\x00\x00\x00\x00"...)
		}
		c, err := dialService(at)
		if err != nil {
			t.add(r, name(err))
			continue
		}
		_, _ = c.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(m))), m...))
		var head [5]byte
		_, err = io.ReadFull(c, head[:])
		c.Close()
		switch {
		case err != nil:
			t.add(r, "CLOSED")
		case head[4] == 5:
			t.add(r, refused)
		default:
			t.win(r, "answered")
		}
	}
	return t.outcome()
}

// nixConn is a client of the worker protocol.
type nixConn struct{ net.Conn }

func (c nixConn) num() (uint64, error) {
	var b [8]byte
	_, err := io.ReadFull(c, b[:])
	return binary.LittleEndian.Uint64(b[:]), err
}

func (c nixConn) text() string {
	n, err := c.num()
	if err != nil || n > 1<<16 {
		return ""
	}
	b := make([]byte, n+-n&7)
	_, _ = io.ReadFull(c, b)
	return string(b[:n])
}

func nixNums(list ...uint64) (b []byte) {
	for _, n := range list {
		b = binary.LittleEndian.AppendUint64(b, n)
	}
	return b
}

func nixText(s string) []byte {
	return append(append(nixNums(uint64(len(s))), s...), make([]byte, -len(s)&7)...)
}

// done reads until an operation has come to an end.
func (c nixConn) done() (said string, answer string) {
	for {
		n, err := c.num()
		switch {
		case err != nil:
			return said, "CLOSED"
		case n == 0x616c7473:
			return said, "OK"
		case n == 0x6f6c6d67:
			said += c.text()
		default:
			return said, refused
		}
	}
}

func dialNix(path string) (nixConn, error) {
	c, err := dialService(path)
	if err != nil {
		return nixConn{}, err
	}
	x := nixConn{c}
	_, _ = x.Write(nixNums(0x6e697863))
	if _, err = x.num(); err == nil {
		_, err = x.num()
	}
	_, _ = x.Write(nixNums(1<<8|30, 0, 0))
	if _, answer := x.done(); err == nil && answer != "OK" {
		err = unix.EPROTO
	}
	return x, err
}

// nixOps sends operations to the Nix daemon at a socket. Before them it sets options, with a hook; NAME:SOCKET of a
// hook that was taken is told by the lab's daemon.
func nixOps(args []string) outcome {
	var t tally
	for _, r := range args[min(1, len(args)):] {
		c, err := dialNix(args[0])
		if err != nil {
			t.add(r, name(err))
			continue
		}
		hook := append(nixNums(19, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 1, 1), append(nixText("post-build-hook"),
			nixText("/evil")...)...)
		_, _ = c.Write(hook)
		said, answer := c.done()
		if r == "hook" {
			if strings.Contains(said, "CANARY") {
				t.win(r, "the daemon took it")
			} else {
				t.add(r, refused)
			}
			c.Close()
			continue
		}
		n, _ := strconv.ParseUint(r, 10, 64)
		m := nixNums(n)
		if n == 9 { // build what the lab's daemon says it would
			m = append(append(append(m, nixNums(1)...), nixText("/x.drv!out")...), nixNums(0)...)
		}
		if answer == "OK" {
			_, _ = c.Write(m)
			_, answer = c.done()
		}
		c.Close()
		if answer == "OK" {
			t.win(r, "done")
		} else {
			t.add(r, answer)
		}
	}
	return t.outcome()
}
