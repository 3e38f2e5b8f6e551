package selftest

import (
	"context"
	"encoding/json"
	"os"
	"testing"

	"sbx/selftest/checks"
)

// layerRun is what the process that performs the checks as the ordinary user is told.
type layerRun struct {
	Runner checks.Runner
	Only   []string
}

func TestLayersProcess(t *testing.T) {
	text := os.Getenv("SBX_TEST_LAYERS")
	if text == "" {
		return
	}
	var job layerRun
	if err := json.Unmarshal([]byte(text), &job); err != nil {
		t.Fatal(err)
	}
	results, err := checks.Run(context.Background(), job.Runner, nil)
	if err != nil {
		t.Fatal(err)
	}
	b, _ := json.Marshal(results)
	os.WriteFile(os.Getenv("SBX_TEST_OUT"), b, 0o644)
}
