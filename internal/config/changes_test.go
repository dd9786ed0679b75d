package config

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/hookonce/hookonce/internal/settings"
)

// another returns a text that is good for a setting and is not its default. What is wrong with a text says
// what to write instead, so that the message of a choice has its words.
func another[C any](t *testing.T, table settings.Table[C], f settings.Field[C]) string {
	t.Helper()
	texts := []string{"9", "9s", "9h", "19h", "9KiB", "9MiB", "false", "true", "sqlite:other.db", "postgres://other.example/db", "127.0.0.1:9", "192.0.2.0/24", "404",
		"https://other.example/", "github", "env:OTHER", "header:X-Other", "json:$.other", "X-Other", "X-Other: yes", "other"}
	if err := f.Bind(new(C)).Set("?"); err != nil {
		texts = append(texts, strings.FieldsFunc(err.Error(), func(c rune) bool { return c == ' ' || c == ',' })...)
	}
	before := new(C)
	table.Reset(before)
	for _, text := range texts {
		after := new(C)
		table.Reset(after)
		if assign(f.Bind(after), text) == nil && len(settings.Differ(before, after, settings.Table[C]{f}, nil, nil)) == 1 {
			return text
		}
	}
	t.Errorf("no text is known that is good for %s and not its default; add one", f.Key)
	return f.Default
}

// assign gives a value one text.
func assign(v settings.Value, text string) error {
	if many, ok := v.(settings.List); ok {
		many.Clear()
	}
	if p, ok := v.(settings.Pairs); ok {
		name, text, _ := strings.Cut(text, ": ")
		return p.SetPair(name, text)
	}
	return v.Set(text)
}

// Every setting is applied by a reload, or refused, and the page says which: none is passed over.
func TestChanges_everySetting(t *testing.T) {
	text, err := os.ReadFile("../../docs/operating.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "These settings need a restart: ")
	refused, _, found := strings.Cut(rest, ". ")
	if !found {
		t.Fatal("docs/operating.md does not say what needs a restart")
	}
	eachChange(t, refused, configTable)
	eachChange(t, refused, tokenTable)
	eachChange(t, refused, destinationTable)
	eachChange(t, refused, sourceTable)
	eachChange(t, refused, routeTable)
	for i, key := range strings.Split(refused, "`") {
		if f, known := configTable.Find(key); i%2 == 1 && !(known && f.Restart) {
			t.Errorf("docs/operating.md says that %s needs a restart", key)
		}
	}
}

// eachChange looks at one table.
func eachChange[C any](t *testing.T, refused string, table settings.Table[C]) {
	t.Helper()
	for _, f := range table {
		if f.Key == "name" {
			continue // whoever has another name is another one
		}
		before, after := new(C), new(C)
		table.Reset(before)
		table.Reset(after)
		if err := assign(f.Bind(after), another(t, table, f)); err != nil {
			t.Errorf("%s: %v", f.Key, err)
		}
		changes := settings.Differ(before, after, table, nil, nil)
		if len(changes) != 1 || changes[0].Setting != f.Key {
			t.Errorf("another %s makes these changes: %+v", f.Key, changes)
			continue
		}
		if got, want := changes[0].Restart, strings.Contains(refused, "`"+f.Key+"`"); got != want {
			t.Errorf("%s needs a restart: %v; docs/operating.md says %v", f.Key, got, want)
		}
		if again := settings.Differ(after, after, table, nil, nil); len(again) != 0 {
			t.Errorf("%s differs from itself: %+v", f.Key, again)
		}
	}
}

const reloadFile = `
destinations:
  - name: ledger
    url: https://ledger.example/?token=hunter2
    secrets: ["env:SIGN"]
    headers: {Authorization: "env:BEARER", X-Team: payments}
    timeout: 10s
  - name: mailer
    url: https://mailer.example/
sources:
  - name: billing
    provider: stripe
    secrets: ["env:STRIPE", "file:hooks.txt"]
    routes:
      - to: [ledger, mailer]
        types: ["invoice.*"]
  - name: shop
    provider: custom
    secrets: ["env:SHOP"]
    to: https://app.example/
    spec:
      verify:
        - encoding: hex
          signature: {in: header:X-Sig}
          sign: [body]
      event:
        key: [["json:$.id"]]
admin_tokens:
  - name: ada
    token: env:ADA
`

// What changed is said in the words of the file, by what holds and not by where it stands, and without any
// secret; what only moved has not changed.
func TestChanges_words(t *testing.T) {
	environ := []string{"STRIPE=whsec_hunter2", "SIGN=hunter2hunter2", "BEARER=hunter2", "SHOP=hunter2hunter2", "ADA=hunter2hunter2hunter2"}
	load := func(t *testing.T, file string, environ []string, content string) *Config {
		t.Helper()
		c, err := Load(Input{Path: "hookonce.yaml", Data: []byte(file), Environ: environ,
			ReadFile: func(string) ([]byte, error) { return []byte(content), nil }})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	replace := func(pairs ...string) string {
		for i := 0; i < len(pairs); i += 2 {
			if !strings.Contains(reloadFile, pairs[i]) {
				t.Fatalf("the file has no %q", pairs[i])
			}
		}
		return strings.NewReplacer(pairs...).Replace(reloadFile)
	}
	for _, c := range []struct {
		name, file string
		environ    string
		content    string
		want       []string
	}{
		{name: "nothing", file: reloadFile},
		{name: "another place", file: "log: {level: info}\ndelivery: {timeout: 15s}\n" + replace("  - name: mailer\n    url: https://mailer.example/\n", "", "destinations:\n", "destinations:\n  - name: mailer\n    url: https://mailer.example/\n")},
		{name: "a default", file: "delivery: {timeout: 20s, rate: 5}\n" + reloadFile,
			want: []string{"delivery.timeout changed (15s → 20s)", "delivery.rate changed (not set → 5)"}},
		{name: "an own value", file: replace("timeout: 10s", "timeout: 15s"), want: []string{"destination ledger: timeout changed (10s → 15s)"}},
		{name: "an own value goes", file: replace("    timeout: 10s\n", ""), want: []string{"destination ledger: timeout changed (10s → 15s)"}},
		{name: "level", file: "log: {level: debug}\n" + reloadFile, want: []string{"log.level changed (info → debug)"}},
		{name: "one secret more", file: replace(`["env:STRIPE", `, `["env:SHOP", "env:STRIPE", `), want: []string{"source billing: secrets changed (2 → 3)"}},
		{name: "a file rotates", file: reloadFile, content: "whsec_other", want: []string{"source billing: secrets changed"}},
		{name: "a time of validity", file: replace(`"file:hooks.txt"`, `{secret: "file:hooks.txt", until: 2099-01-01T00:00:00Z}`), want: []string{"source billing: secrets changed"}},
		{name: "a header's secret", file: reloadFile, environ: "BEARER=hunter22", want: []string{"destination ledger: headers changed"}},
		{name: "a header", file: replace(", X-Team: payments", ""), want: []string{"destination ledger: headers changed (2 → 1)"}},
		{name: "a signing secret", file: reloadFile, environ: "SIGN=hunter22", want: []string{"destination ledger: secrets changed"}},
		{name: "a token in a URL", file: replace("token=hunter2", "token=hunter22"), want: []string{"destination ledger: url changed"}},
		{name: "a URL", file: replace("mailer.example", "mail.example"), want: []string{"destination mailer: url changed (https://mailer.example/ → https://mail.example/)"}},
		{name: "a route", file: replace(`["invoice.*"]`, `["invoice.*", "charge.*"]`), want: []string{"source billing: routes changed"}},
		{name: "a route more", file: replace(`        types: ["invoice.*"]`, "      - to: mailer"), want: []string{"source billing: routes changed (1 → 2)"}},
		{name: "a specification", file: replace("encoding: hex", "encoding: base64"), want: []string{"source shop: spec changed"}},
		{name: "a source goes", file: reloadFile[:strings.Index(reloadFile, "  - name: shop")] + "  - name: hub\n    provider: github\n    secrets: [\"env:SHOP\"]\n    to: https://app.example/\n" + reloadFile[strings.Index(reloadFile, "admin_tokens"):],
			want: []string{"source shop removed", "source hub added"}},
		{name: "a token", file: replace("token: env:ADA", "token: env:ADA\n    role: operator"), environ: "ADA=hunter2hunter2hunter22", want: []string{"admin token ada: token changed", "admin token ada: role changed (read → operator)"}},
		{name: "the store", file: "store: postgres://u:hunter2@h/db\n" + reloadFile, want: []string{"store changed (sqlite:hookonce.db → postgres://u:****@h/db)"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := load(t, reloadFile, environ, "whsec_fake")
			if c.content == "" {
				c.content = "whsec_fake"
			}
			changes := before.Changes(load(t, c.file, append(slices.Clone(environ), c.environ), c.content))
			var got []string
			for _, change := range changes {
				got = append(got, change.Text)
				if strings.Contains(change.Text, "hunter2") || strings.Contains(change.Text, "whsec") {
					t.Errorf("a secret is shown: %s", change.Text)
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("changes %q\nwant    %q", got, c.want)
			}
		})
	}
}

// A file of a certificate that was renewed is another one under the same name.
func TestChanges_certificates(t *testing.T) {
	before, after := Destination{Name: "d"}, Destination{Name: "d"}
	before.TLS.Cert, after.TLS.Cert = "app.pem", "app.pem"
	before.TLS.pem.cert, after.TLS.pem.cert = []byte("old"), []byte("new")
	if got := before.changes(&after); len(got) != 1 || got[0].Text != "tls.cert changed" {
		t.Errorf("changes %+v", got)
	}
	if before.TLS.Same(after.TLS) || !after.TLS.Same(after.TLS) {
		t.Error("other content is the same, or the same is other")
	}
}
