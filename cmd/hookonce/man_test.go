package main

import (
	"bytes"
	"cmp"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// scripts/release has the pages written for packages. This is a test, because the commands are in package main, and
// the program does not have to carry what writes pages.
var manDir = flag.String("man", "", "write the manual pages into this `folder`, dated by SOURCE_DATE_EPOCH")

// TestManualPages: every command has a manual page, and mandoc finds nothing wrong with any.
func TestManualPages(t *testing.T) {
	epoch, err := strconv.ParseInt(cmp.Or(os.Getenv("SOURCE_DATE_EPOCH"), "0"), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	dir := cmp.Or(*manDir, t.TempDir())
	var pages []string
	for _, c := range descendants(newRootCommand(&env{args: []string{"hookonce"}, out: io.Discard, err: io.Discard})) {
		page, err := manualPage(c, time.Unix(epoch, 0).UTC())
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, filepath.Join(dir, strings.ReplaceAll(c.CommandPath(), " ", "-")+".1"))
		if err := os.WriteFile(pages[len(pages)-1], page, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if testing.Short() || *manDir != "" {
		return // mandoc is among what scripts/install-servers installs
	}
	out, err := exec.Command("mandoc", append([]string{"-T", "lint", "-W", "warning"}, pages...)...).CombinedOutput()
	if err != nil || len(out) > 0 {
		t.Errorf("mandoc: %v\n%s", err, out)
	}
}

var (
	manOption = regexp.MustCompile(`(?m)^(?:\.PP\n)?(\\fB-.*)\n\t`)
	manDate   = regexp.MustCompile(`(?m)^(\.TH "[^"]*" "1") "[^"]*"`)
)

// manualPage writes the page of a command, with options as a list of terms and a date that is one, which cobra does
// not.
func manualPage(c *cobra.Command, date time.Time) ([]byte, error) {
	c.DisableAutoGenTag = true // its date is that of the day
	var page bytes.Buffer
	if err := doc.GenMan(c, &doc.GenManHeader{Manual: "hookonce", Source: "hookonce"}, &page); err != nil {
		return nil, err
	}
	text := manOption.ReplaceAll(page.Bytes(), []byte(".TP\n$1\n"))
	return manDate.ReplaceAll(text, []byte(`$1 "`+date.Format(time.DateOnly)+`"`)), nil
}
