package hookonce_test

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// Modules that are part of what another one is.
var (
	pgx   = []string{"github.com/jackc/pgpassfile", "github.com/jackc/pgservicefile", "github.com/jackc/pgx/v5", "github.com/jackc/puddle/v2", "golang.org/x/sync", "golang.org/x/text"}
	gjson = []string{"github.com/tidwall/gjson", "github.com/tidwall/match", "github.com/tidwall/pretty", "github.com/tidwall/sjson", "golang.org/x/text"}
)

// carried are the programs in testdata/programs, with the modules that each may link. The README states them.
var carried = map[string][]string{
	"postgres":    slices.Concat(pgx, gjson),
	"databasesql": gjson, // and its driver
	"memory":      nil,
}

// TestWhatProgramsCarry: a library in the path of money is read before it is used, with all that it links.
func TestWhatProgramsCarry(t *testing.T) {
	for name, want := range carried {
		t.Run(name, func(t *testing.T) {
			dir := "./testdata/programs/" + name
			vet := exec.Command("go", "vet", dir)
			vet.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=") // as `make build` compiles, so that little is compiled for it
			if out, err := vet.CombinedOutput(); err != nil {
				t.Fatalf("the program does not compile: %v\n%s", err, out)
			}
			out, err := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}}{{end}}{{end}}", dir).Output()
			if err != nil {
				t.Fatal(err)
			}
			got := strings.Fields(string(out))
			slices.Sort(got)
			got = slices.Compact(got)
			want := slices.Compact(slices.Sorted(slices.Values(want)))
			if !slices.Equal(got, want) {
				t.Errorf("it carries\n%v\nand should carry\n%v", got, want)
			}
		})
	}
}
