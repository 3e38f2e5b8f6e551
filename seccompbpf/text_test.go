package seccompbpf

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
)

var update = flag.Bool("update", false, "rewrite testdata")

func TestGolden(t *testing.T) {
	for _, a := range []Arch{AMD64, ARM64} {
		p := Default(a, Toggles{Debug: true})
		prog, err := Compile(p)
		if err != nil {
			t.Fatal(err)
		}
		for ext, got := range map[string]string{"txt": Text(p), "bpf": Dump(prog)} {
			f := filepath.Join("testdata", "default."+a.String()+"."+ext)
			if *update {
				if err := os.WriteFile(f, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("%s differs; look at the change and run go test ./seccompbpf -update", f)
			}
		}
	}
}
