//go:build linux

// Package helpertest lets the tests of sbx-helper be a caller of it that is not sbx. It must hold nothing but that;
// selftest calls it.
package helpertest

import (
	"sbx.example/sbx/broker/internal/child"
	"sbx.example/sbx/broker/internal/helperclient"
	"sbx.example/sbx/broker/internal/steps"
	"sbx.example/sbx/broker/plan"
)

// Tail is what process 1 does when it has given up its privileges, as a file to be sent to the helper; the descriptor
// is the caller's to close.
func Tail(p *plan.Plan) (fd int, err error) {
	t, err := child.NewTail(p)
	if err != nil {
		return -1, err
	}
	return t.FD, nil
}

// Go lets the tail start its program.
func Go(sock int) error { return steps.Go(sock) }

// Send writes one request.
func Send(sock int, body []byte, fds []int) error { return helperclient.Send(sock, body, fds) }
