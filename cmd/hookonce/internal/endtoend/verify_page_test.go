package endtoend

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestVerifyPage runs the commands of docs/verify.md, and compares what they print with what the page says.
func TestVerifyPage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../../docs/verify.md")
	if err != nil {
		t.Fatal(err)
	}
	script, files := scriptOf(string(page), "")
	if len(files) == 0 || strings.Count(script, "hookonce verify") != len(files) {
		t.Fatalf("%d texts and this script were found on the page; are the patterns still right?\n%s", len(files), script)
	}
	name := filepath.Join(t.TempDir(), "verify.txt")
	if err := os.WriteFile(name, []byte(script+strings.Join(files, "")), 0o600); err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{Files: []string{name}, Cmds: scriptCommands()})
}
