package control

import (
	"errors"
	"os"

	"sbx.example/sbx/broker/plan"
)

// A file in memory that nobody can change takes Linux, and so do programs that are started later in a session.
var errMore = errors.New("as many arguments as these are passed on Linux only")

func writeMore([]plan.Bytes) (*os.File, int, error) { return nil, 0, errMore }

func readMore(*os.File, int) ([]plan.Bytes, error) { return nil, errMore }
