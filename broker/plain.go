//go:build linux && sbx_plain

package main

import "sbx.example/sbx/broker/internal/cli"

// before is nothing: this program was built without faststart, and is slower.
func before() cli.Before { return cli.Before{} }
