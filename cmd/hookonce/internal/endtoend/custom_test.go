package endtoend

import (
	"fmt"
	"github.com/hookonce/hookonce/internal/testskip"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/hookonce/hookonce/provider/spec"
	"github.com/hookonce/hookonce/provider/spec/specyaml"
)

// The page about providers of one's own is run as it stands: its files are written, its commands are
// executed in order, and what they print is compared with what it says. Only addresses differ.

const customPage = "../../../../docs/custom-providers.md"

func readCustomPage(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(customPage)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// destination stands for the reader's program.
type destination struct {
	*httptest.Server
	got   chan string
	first string // the key of the first delivery, as its line
}

func newDestination(t *testing.T) *destination {
	d := &destination{got: make(chan string, 100)}
	d.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		request, err := httputil.DumpRequest(r, true)
		if err != nil {
			t.Error(err)
		}
		d.got <- strings.ReplaceAll(string(request), "\r\n", "\n")
	}))
	t.Cleanup(d.Close)
	return d
}

// delivered insists that the first delivery has the lines of a file, or else that it did not come again.
func (d *destination) delivered(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		for range len(d.got) {
			if again := <-d.got; strings.Contains(again, d.first) {
				ts.Fatalf("delivered twice:\n%s", again)
			}
		}
		return
	}
	var got string
	select {
	case got = <-d.got:
	case <-time.After(patience):
		ts.Fatalf("nothing is delivered")
	}
	for line := range strings.Lines(ts.ReadFile(args[0])) {
		if !strings.Contains(got+"\n", line) {
			ts.Fatalf("the delivery lacks %q:\n%s", line, got)
		}
		if strings.HasPrefix(line, "Idempotency-Key:") {
			d.first = line
		}
	}
}

func TestCustomProvidersPage(t *testing.T) {
	t.Parallel()
	page := readCustomPage(t)
	dest := newDestination(t)
	script, files := scriptOf(page, dest.Listener.Addr().String())
	if len(files) < 6 || strings.Count(script, "hookonce ") < 5 {
		t.Fatalf("%d texts and this script were found on the page; are the patterns still right?\n%s", len(files), script)
	}
	name := filepath.Join(t.TempDir(), "custom-providers.txt")
	if err := os.WriteFile(name, []byte(script+"stop\n! delivered\n"+strings.Join(files, "")), 0o600); err != nil {
		t.Fatal(err)
	}
	cmds := scriptCommands()
	cmds["delivered"] = dest.delivered
	testscript.Run(t, testscript.Params{Files: []string{name}, Setup: freePorts, Cmds: cmds})
}

var (
	fence     = regexp.MustCompile("(?ms)^```([a-z]+)\n(.*?)^```$")
	pageBlock = regexp.MustCompile("(?s)^```([a-z]+)\n(.*?\n)```$")
	savedAs   = regexp.MustCompile("[Ss]ave this as `([a-z.]+)`")
)

// scriptOf makes a script of the page: files from the blocks that are to be saved, commands from those
// of a shell, and comparisons from those of text.
func scriptOf(page, destination string) (script string, files []string) {
	save := ""
	for i, paragraph := range paragraphs(page) {
		block := pageBlock.FindStringSubmatch(paragraph)
		want := fmt.Sprintf("want-%d", i)
		switch {
		case block == nil:
			if m := savedAs.FindStringSubmatch(paragraph); m != nil {
				save = m[1]
			}
			continue
		case save != "":
			text := strings.ReplaceAll(block[2], "127.0.0.1:3000", destination)
			files = append(files, "-- "+save+" --\n"+text)
			save = ""
		case block[1] == "sh":
			script += commandsOf(block[2])
		case block[1] == "text":
			files = append(files, "-- "+want+" --\n"+block[2])
			script += "cmp stdout " + want + "\n"
		case block[1] == "http":
			files = append(files, "-- "+want+" --\n"+block[2])
			script += "delivered " + want + "\n"
		}
	}
	return script, files
}

// paragraphs cuts a page at its empty lines, outside of blocks.
func paragraphs(page string) (all []string) {
	var open []string
	fenced := false
	for line := range strings.SplitSeq(page, "\n") {
		if strings.HasPrefix(line, "```") {
			fenced = !fenced
		}
		if line == "" && !fenced {
			all, open = append(all, strings.Join(open, "\n")), nil
			continue
		}
		open = append(open, line)
	}
	return append(all, strings.Join(open, "\n"))
}

// commandsOf makes lines of a script of the lines of a shell. The shell sees what the reader types, and
// shows errors where the reader sees them.
func commandsOf(block string) (script string) {
	for line := range strings.Lines(block) {
		line = strings.TrimSuffix(line, "\n")
		command, status, fails := strings.Cut(line, " # exit status ")
		setting, exported := strings.CutPrefix(command, "export ")
		command = strings.ReplaceAll(command, "127.0.0.1:8080", "$ADDR")
		quoted := "sh -c '" + strings.ReplaceAll(command+" 2>&1", "'", "''") + "'"
		switch {
		case exported:
			script += "env " + setting + "\n"
		case command == "hookonce serve":
			script += "serve\n"
		case fails:
			script += "exits " + status + " " + quoted + "\n"
		default:
			script += "exec " + quoted + "\n"
		}
	}
	return script
}

// TestCustomProvidersPageIsOfOnePiece: what is served is what was tried.
func TestCustomProvidersPageIsOfOnePiece(t *testing.T) {
	tried, served := customSpec(t, readCustomPage(t))
	tried = without(without(tried, "name"), "example")
	if indented := regexp.MustCompile("(?m)^").ReplaceAllString(strings.TrimSuffix(tried, "\n"), "      "); !strings.HasSuffix(strings.TrimSuffix(served, "\n"), "spec:\n"+indented) {
		t.Errorf("hookonce.yaml does not end with\n%s", indented)
	}
}

// customSpec returns the two files of the page.
func customSpec(t *testing.T, page string) (tried, served string) {
	t.Helper()
	for _, block := range fence.FindAllStringSubmatch(page, -1) {
		switch {
		case block[1] == "yml" && strings.HasPrefix(block[2], "name: acme"):
			tried = block[2]
		case block[1] == "yaml":
			served = block[2]
		}
	}
	if tried == "" || served == "" {
		t.Fatal("the page has lost a file")
	}
	return tried, served
}

// without returns a specification that lacks a block.
func without(text, block string) string {
	return regexp.MustCompile("(?m)^"+block+":.*\n(^[ \t].*\n)*").ReplaceAllString(text, "")
}

// with returns a specification in which blocks are replaced, or added.
func with(text, blocks string) string {
	for _, m := range regexp.MustCompile("(?m)^([a-z]+):").FindAllStringSubmatch(blocks, -1) {
		text = without(text, m[1])
	}
	return text + strings.TrimSuffix(blocks, "\n") + "\n"
}

// rows returns the code in the first two cells of the rows of the page's tables that have it.
func rows(page string) [][]string {
	return regexp.MustCompile("(?m)^\\|(?:[^`\n]|`[^`\n]*`)*?`([a-z_]+: [^`\n]*)` \\| (.*) \\|$").FindAllStringSubmatch(page, -1)
}

// TestCustomProvidersPageRecipes: what the page shows can be used, and what it says is refused is refused,
// in these words.
func TestCustomProvidersPageRecipes(t *testing.T) {
	testskip.Long(t)
	t.Parallel()
	page := readCustomPage(t)
	tried, served := customSpec(t, page)
	recipes, refusals := 0, 0
	for _, block := range fence.FindAllStringSubmatch(page, -1) {
		if block[1] == "yml" {
			recipes++
			usable(t, with(tried, block[2]))
		}
	}
	shown, refused, _ := strings.Cut(page, "\n## What is refused\n")
	for _, row := range rows(shown) {
		recipes++
		usable(t, with(tried, row[1]))
	}
	head, _, _ := strings.Cut(served, "    spec:\n")
	for _, row := range rows(refused) {
		refusals++
		file := head + "    spec:\n" + regexp.MustCompile("(?m)^(.)").ReplaceAllString(with(tried, row[1]), "      $1")
		status, out := checked(t, file)
		if refusal := strings.Trim(row[2], "`"); status != 1 || !strings.Contains(out, refusal) {
			t.Errorf("%s: exit status %d, want %q in\n%s", row[1], status, refusal, out)
		}
	}
	if recipes < 14 || refusals < 12 {
		t.Errorf("found %d recipes and %d refusals; are the patterns still right?", recipes, refusals)
	}
}

// usable insists that a specification can be built, with a secret in one form or another.
func usable(t *testing.T, text string) {
	t.Helper()
	known, err := specyaml.Parse([]byte(text))
	if err != nil {
		t.Errorf("%v in\n%s", err, text)
		return
	}
	// The last is the public key of RFC 8410, 10.1.
	for _, secret := range []string{"fake-secret-that-is-long-enough-for-any", "whsec_bm90IGEgcmVhbCBzZWNyZXQ=", "user:password", strings.Repeat("00", 32),
		"-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n-----END PUBLIC KEY-----\n"} {
		if _, err = spec.New(known, spec.Settings{Secrets: spec.Secrets(secret)}); err == nil {
			return
		}
	}
	t.Errorf("%v in\n%s", err, text)
}

// checked runs hookonce config check on that text.
func checked(t *testing.T, text string) (status int, out string) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "hookonce.yaml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return command([]string{"ACME_SECRET=acme-fake-secret"}, "config", "check", "--config", name)
}
