package main

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// Pages rot first in their commands: whatever a page tells people to type must exist.

var (
	fence     = regexp.MustCompile("(?ms)^```([a-z]+)\n(.*?)^```$")
	programOf = regexp.MustCompile("(?ms)^<!-- program: ([^\n]+) -->\n```go\n(.*?)^```$")

	makeOf = regexp.MustCompile(`(?m)^([a-z-]+):`)

	opening  = regexp.MustCompile(`\bopen(?:_delivery)?\((?i:secrets)[^)]*\)`)
	calling  = regexp.MustCompile(`\.Do\(|\bhttp\.(?:Get|Head|Post|PostForm)\(`)
	inline   = regexp.MustCompile("`[^`\\n]+`")
	selector = regexp.MustCompile(`\b([a-z]+)\.([A-Z]\w*)`)
	testOf   = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	testName = regexp.MustCompile("`((?:Test|Fuzz)[A-Z]\\w*)[`/]")
)

func TestPagesTypeCommandsThatExist(t *testing.T) {
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	targets := map[string]bool{}
	for _, m := range makeOf.FindAllSubmatch(makefile, -1) {
		targets[string(m[1])] = true
	}
	commands := 0
	for page, text := range pages(t) {
		for _, block := range fence.FindAllStringSubmatch(text, -1) {
			if block[1] != "sh" {
				continue
			}
			for line := range strings.Lines(strings.ReplaceAll(block[2], "\\\n", " ")) {
				line, _, _ = strings.Cut(strings.TrimSpace(line), " #")
				words := shellWords(strings.TrimSpace(line))
				switch {
				case len(words) >= 2 && words[0] == "make" && !targets[words[1]]:
					t.Errorf("%s: %q: the Makefile has no such target", page, line)
				case len(words) >= 3 && words[0] == "go" && words[2] == "./cmd/hookonce":
					checkCommand(t, page, line, words[3:])
					commands++
				case len(words) >= 1 && words[0] == "hookonce":
					checkCommand(t, page, line, words[1:])
					commands++
				}
			}
		}
	}
	if commands < 5 {
		t.Errorf("found only %d commands in the pages; is the pattern still right?", commands)
	}
}

// checkCommand parses a command line without running it.
func checkCommand(t *testing.T, page, line string, args []string) {
	t.Helper()
	root := newRootCommand(&env{args: []string{"hookonce"}, out: io.Discard, err: io.Discard})
	var reached *cobra.Command
	for _, c := range descendants(root) {
		c.PersistentPreRunE = nil
		c.RunE = func(c *cobra.Command, _ []string) error { reached = c; return nil }
	}
	root.SetArgs(args)
	if err := root.Execute(); err != nil {
		t.Errorf("%s: %q: %v", page, line, err)
	} else if reached == root && len(args) > 0 {
		t.Errorf("%s: %q: no such command", page, line)
	}
}

func descendants(c *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{c}
	for _, sub := range c.Commands() {
		if !sub.Hidden {
			all = append(all, descendants(sub)...)
		}
	}
	return all
}

func TestPagesShowGoThatParses(t *testing.T) {
	for page, text := range pages(t) {
		for _, block := range fence.FindAllStringSubmatch(text, -1) {
			if block[1] != "go" {
				continue
			}
			source := "package p\nfunc _() error {\n" + block[2] + "\nreturn nil\n}"
			switch {
			case strings.HasPrefix(block[2], "package "):
				source = block[2]
			case strings.HasPrefix(block[2], "func Test"):
				source = "package p\n" + block[2]
			}
			if _, err := parser.ParseFile(token.NewFileSet(), page, source, 0); err != nil {
				t.Errorf("%s: %v\n%s", page, err, block[2])
			}
		}
	}
}

// TestPagesShowProgramsThatRun: a block of Go under a comment that names files is a part of each of them,
// white space aside, and so of a program that is tested. Pages show the transactions of pgx, where a
// program may have those of database/sql.
func TestPagesShowProgramsThatRun(t *testing.T) {
	plain := func(text string) string {
		return strings.Join(strings.Fields(strings.ReplaceAll(text, "*sql.Tx", "pgx.Tx")), " ")
	}
	shown := 0
	for page, text := range pages(t) {
		if n, m := strings.Count("\n"+text, "\n<!-- program:"), len(programOf.FindAllString(text, -1)); n != m {
			t.Errorf("%s: %d comments name programs, %d stand above a block of Go", page, n, m)
		}
		for _, block := range programOf.FindAllStringSubmatch(text, -1) {
			for _, file := range strings.Fields(block[1]) {
				program, err := os.ReadFile(filepath.Join("../..", file))
				if err != nil {
					t.Fatalf("%s: %v", page, err)
				}
				if shown++; !strings.Contains(plain(string(program)), plain(block[2])) {
					t.Errorf("%s: %s does not have what the page shows:\n%s", page, file, block[2])
				}
			}
		}
	}
	if shown < 6 {
		t.Errorf("found only %d programs in the pages; is the pattern still right?", shown)
	}
}

// TestPagesLookAtTheEndOfTheTransaction: whoever copies a block that claims in Python or JavaScript does not answer 2xx for what
// the server rolled back without an error.
func TestPagesLookAtTheEndOfTheTransaction(t *testing.T) {
	claims := 0
	for page, text := range pages(t) {
		for _, block := range fence.FindAllStringSubmatch(text, -1) {
			look, ok := map[string]string{"python": "TransactionStatus.INERROR", "js": "end.command"}[block[1]]
			if !ok || !strings.Contains(block[2], "hookonce.claim(") {
				continue
			}
			if claims++; !strings.Contains(block[2], look) {
				t.Errorf("%s claims, and does not look at %s:\n%s", page, look, block[2])
			}
		}
	}
	if claims < 4 {
		t.Errorf("found only %d claims in the pages; is the pattern still right?", claims)
	}
}

// TestPagesOpenDeliveriesAsTheShopsDo: a block that opens a delivery in Python or JavaScript calls what one copies from
// examples/gateway as the shop there does, which is tested.
func TestPagesOpenDeliveriesAsTheShopsDo(t *testing.T) {
	opened := map[string]bool{}
	for page, text := range pages(t) {
		for _, block := range fence.FindAllStringSubmatch(text, -1) {
			shop := map[string]string{"python": "python/shop.py", "js": "node/shop.mjs"}[block[1]]
			for _, call := range opening.FindAllString(block[2], -1) {
				program, err := os.ReadFile(filepath.Join("../../examples/gateway", shop))
				if err != nil {
					t.Fatal(err)
				}
				if opened[block[1]] = true; !strings.Contains(string(program), call) {
					t.Errorf("%s: %s does not call %s", page, shop, call)
				}
			}
		}
	}
	if len(opened) < 2 {
		t.Errorf("found calls only in %v; is the pattern still right?", opened)
	}
}

// TestPagesLookAtTheStatus: whoever copies Go that calls another system does not take a 503 of it for the effect. The examples
// of the packages are pages, too.
func TestPagesLookAtTheStatus(t *testing.T) {
	shown := map[string]string{} // code, and where it stands
	for page, text := range pages(t) {
		for _, block := range fence.FindAllStringSubmatch(text, -1) {
			if block[1] == "go" {
				shown[block[2]] = page
			}
		}
	}
	files, err := filepath.Glob("../../example*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, function := range strings.Split(string(text), "\nfunc ") {
			shown[function] = filepath.Base(file)
		}
	}
	calls := 0
	for code, where := range shown {
		if !calling.MatchString(code) {
			continue
		}
		if calls++; !strings.Contains(code, ".StatusCode") {
			t.Errorf("%s calls, and does not look at the status:\n%s", where, code)
		}
	}
	if calls < 3 {
		t.Errorf("found only %d calls in the pages; is the pattern still right?", calls)
	}
}

// TestPagesShowGoThatExists: what a page takes from our packages is there. The changelog names what is gone.
func TestPagesShowGoThatExists(t *testing.T) {
	packages := map[string]map[string]bool{}
	for _, dir := range []string{"", "dynamostore", "hookoncetest", "janitor", "memstore", "pgstore", "provider", "provider/spec", "provider/spec/specyaml", "redisstore", "relay", "sqlstore", "storetest"} {
		packages[filepath.Base(filepath.Join("hookonce", dir))] = exported(t, filepath.Join("../..", dir))
	}
	named := 0
	for page, text := range pages(t) {
		if page == "CHANGELOG.md" {
			continue
		}
		code := strings.Join(inline.FindAllString(text, -1), "\n")
		for _, block := range fence.FindAllStringSubmatch(text, -1) {
			if block[1] == "go" {
				code += block[2]
			}
		}
		for _, m := range selector.FindAllStringSubmatch(code, -1) {
			if names := packages[m[1]]; names != nil {
				if named++; !names[m[2]] {
					t.Errorf("%s: there is no %s.%s", page, m[1], m[2])
				}
			}
		}
	}
	if named < 20 {
		t.Errorf("found only %d names in the pages; is the pattern still right?", named)
	}
}

// exported returns what the package in a folder declares for others.
func exported(t *testing.T, dir string) map[string]bool {
	t.Helper()
	p := parsePackage(t, dir)
	names := map[string]bool{}
	add := func(values []*doc.Value, functions []*doc.Func) {
		for _, v := range values {
			for _, name := range v.Names {
				names[name] = true
			}
		}
		for _, f := range functions {
			names[f.Name] = true
		}
	}
	add(p.Consts, p.Funcs)
	add(p.Vars, nil)
	for _, typ := range p.Types {
		names[typ.Name] = true
		add(typ.Consts, typ.Funcs)
		add(typ.Vars, nil)
	}
	return names
}

func parsePackage(t *testing.T, dir string) *doc.Package {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range names {
		f, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	p, err := doc.NewFromFiles(fset, files, dir)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestPagesShowConfigurationsThatLoad(t *testing.T) {
	for page, text := range pages(t) {
		for _, block := range fence.FindAllStringSubmatch(text, -1) {
			if block[1] != "yaml" {
				continue
			}
			if !strings.Contains(block[2], "sources:") { // a part of a file
				block[2] += `sources: [{name: billing, provider: stripe, secrets: ["env:STRIPE_WEBHOOK_SECRET"], to: "http://127.0.0.1:3000"}]` + "\n"
			}
			dir := t.TempDir()
			writeCertificate(t, dir) // where the page has it in /etc/hookonce
			file := filepath.Join(dir, "hookonce.yaml")
			if err := os.WriteFile(file, []byte(strings.NewReplacer("/etc/hookonce/admin.", dir+"/admin.", "/etc/hookonce/ledger-2026.pem", dir+"/admin.key").Replace(block[2])), 0o600); err != nil {
				t.Fatal(err)
			}
			w := &env{
				args: []string{"hookonce", "config", "check", "--config", file},
				environ: []string{"STRIPE_WEBHOOK_SECRET=whsec_fake", "ACME_SECRET=acme-fake-secret", "LEDGER_WEBHOOK_SECRET=whsec_ZmFrZQ==",
					"PROMETHEUS_TOKEN=a-fake-token-for-reading", "ONCALL_TOKEN=a-fake-token-for-operators",
					"SHOPIFY_SECRET=a-fake-secret", "TWILIO_AUTH_TOKEN=a-fake-token",
					"MAILGUN_SIGNING_KEY=a-fake-key", "SHOP_WEBHOOK_SECRET=whsec_ZmFrZQ==",
					"STRIPE_LIST_KEY=rk_test_fake", "HEARTBEAT_URL=https://beats.example.com/fake", "PAGER_URL=pagerduty:///0123456789abcdef0123456789abcdef",
					"CHAT_URL=slack://hook:AAAAAAAAA-BBBBBBBBB-123456789123456789123456@webhook", "INCIDENTS_URL=https://incidents.example.com/hooks",
					"INCIDENTS_SECRET=whsec_ZmFrZQ==", "INTERNAL_SECRET=whsec_ZmFrZQ==", "OTLP_AUTHORIZATION=Bearer a-fake-token"}, out: io.Discard, err: os.Stderr,
			}
			if code := execute(w); code != exitOK {
				t.Errorf("%s: config check of its example exits %d", page, code)
			}
		}
	}
}

// writeCertificate writes admin.pem and admin.key.
func writeCertificate(t *testing.T, dir string) {
	t.Helper()
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	signed, err := x509.CreateCertificate(nil, template, template, public, private)
	if err != nil {
		t.Fatal(err)
	}
	key, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{"admin.pem": {Type: "CERTIFICATE", Bytes: signed}, "admin.key": {Type: "PRIVATE KEY", Bytes: key}} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestPagesNameTestsThatExist: a guarantee is worth as much as the test that is named beside it.
func TestPagesNameTestsThatExist(t *testing.T) {
	tests := map[string]bool{}
	err := filepath.WalkDir("../..", func(file string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(file, "_test.go") {
			return err
		}
		text, err := os.ReadFile(file)
		for _, m := range testOf.FindAllSubmatch(text, -1) {
			tests[string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	named := 0
	for page, text := range pages(t) {
		for _, m := range testName.FindAllStringSubmatch(text, -1) {
			if named++; !tests[m[1]] {
				t.Errorf("%s: there is no test %s", page, m[1])
			}
		}
	}
	if named < 100 {
		t.Errorf("found only %d names of tests in the pages; is the pattern still right?", named)
	}
}

// pages returns the Markdown files of the project by name.
func pages(t *testing.T) map[string]string {
	t.Helper()
	names, err := filepath.Glob("../../*.md")
	if err != nil {
		t.Fatal(err)
	}
	docs, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, name := range append(names, docs...) {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all[strings.TrimPrefix(name, "../../")] = string(text)
	}
	if len(all) < 5 {
		t.Fatalf("found only %d pages", len(all))
	}
	return all
}

// shellWords splits a command line at spaces outside double quotes.
func shellWords(line string) (words []string) {
	var word strings.Builder
	quoted, started := false, false
	flush := func() {
		if started {
			words = append(words, word.String())
		}
		word.Reset()
		started = false
	}
	for _, r := range line {
		switch {
		case r == '"':
			quoted, started = !quoted, true
		case r == ' ' && !quoted:
			flush()
		default:
			word.WriteRune(r)
			started = true
		}
	}
	flush()
	return words
}
