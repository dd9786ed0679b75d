package config

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/hookonce/hookonce/internal/settings"
)

// another is a value of every setting that is not its default. A setting that is new belongs here, and into
// the sentence of docs/operating.md about what needs a restart, if it does.
var another = map[string]string{
	"listen": "127.0.0.1:9", "admin": "127.0.0.1:9", "store": "sqlite:other.db", "schema": "other", "migrate": "false",
	"log.level": "debug", "log.format": "json", "shutdown_timeout": "9s", "shutdown_delay": "2s", "trusted_proxies": "192.0.2.0/24",
	"max_connections": "9999", "max_connections_per_address": "9",
	"queue.events": "9999", "queue.bytes": "9MiB", "queue.batch": "9",
	"delivery.concurrency": "9", "delivery.timeout": "9s", "delivery.rate": "9", "delivery.attempts": "9", "delivery.backoff": "9s",
	"delivery.backoff_max": "9s", "delivery.give_up": "9s", "delivery.permanent": "499", "delivery.breaker": "false",
	"delivery.breaker_failures": "9", "delivery.breaker_pause": "9s", "delivery.breaker_pause_max": "9s",
	"delivery.allow_private": "false", "delivery.ports": "999", "delivery.lease": "19s",
	"retention.ids": "9d", "retention.bodies": "9h", "retention.attempts": "9h", "retention.answers": "9h", "retention.audits": "9d",

	"url": "https://other.example/", "secrets": "other", "timeout": "9s", "concurrency": "9", "rate": "9", "attempts": "9", "backoff": "9s",
	"backoff_max": "9s", "give_up": "9s", "permanent": "499", "breaker": "true", "breaker_failures": "9", "breaker_pause": "9s",
	"breaker_pause_max": "9s", "headers": "X-Other: yes", "pass_headers": "X-Other", "drop_headers": "X-Other", "also_pass": "X-Other", "order": "by_resource",
	"stale": "flag", "tls.ca": "other.pem", "tls.cert": "other.pem", "tls.key": "other.pem", "tls.server_name": "other.example",

	"provider": "github", "to": "https://other.example/", "burst": "9", "allow": "192.0.2.0/24", "twins.drop": "other", "mode": "sync",
	"deadline": "9s", "on_store_down": "open", "open_types": "other", "handshakes": "true", "token": "env:OTHER", "role": "operator",
	"max_body": "9KiB", "tolerance": "9s", "hmac.header": "X-Other", "hmac.encoding": "base64", "hmac.digest": "sha512",
	"hmac.prefix": "other", "hmac.form": "base64", "hmac.key": "json:$.other", "hmac.type": "json:$.other",
	"idempotency.scope": "header:X-Other", "idempotency.wait": "9s", "idempotency.optional_key": "true", "idempotency.strict_key": "true",
	"idempotency.headers": "X-Other", "idempotency.max_answer": "9KiB", "idempotency.lease": "9s", "idempotency.remember": "9d", "idempotency.new_keys": "9",
	"idempotency.documentation": "https://other.example/",

	"sign_as": "provider", "app_secret": "env:OTHER", "app_url": "https://other.example/",

	"route to": "other", "source sign_as": "none", "types": "other", "where": "json:$.other: yes",
}

// Every setting is applied by a reload, or refused, and the page says which: none is passed over.
func TestChanges_everySetting(t *testing.T) {
	text, err := os.ReadFile("../../docs/operating.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "What needs a restart: ")
	refused, _, found := strings.Cut(rest, ". ")
	if !found {
		t.Fatal("docs/operating.md does not say what needs a restart")
	}
	eachChange(t, refused, configTable)
	eachChange(t, refused, tokenTable)
	eachChange(t, refused, destinationTable)
	eachChange(t, refused, sourceTable, "source ")
	eachChange(t, refused, routeTable, "route ")
	for i, key := range strings.Split(refused, "`") {
		if f, known := configTable.Find(key); i%2 == 1 && !(known && f.Restart) {
			t.Errorf("docs/operating.md says that %s needs a restart", key)
		}
	}
}

// eachChange looks at one table. Keys of which another table has one as well have a word in front in another.
func eachChange[C any](t *testing.T, refused string, fields settings.Table[C], whose ...string) {
	t.Helper()
	for _, f := range fields {
		if f.Key == "name" {
			continue // whoever has another name is another one
		}
		sample, ok := another[strings.Join(whose, "")+f.Key]
		if !ok {
			sample, ok = another[f.Key]
		}
		if !ok {
			t.Errorf("nothing says what a reload does with %s", f.Key)
			continue
		}
		before, after := new(C), new(C)
		fields.Reset(before)
		fields.Reset(after)
		assign(t, f.Bind(after), sample)
		changes := settings.Differ(before, after, fields, nil, nil)
		if len(changes) != 1 || changes[0].Setting != f.Key {
			t.Errorf("another %s makes these changes: %+v", f.Key, changes)
			continue
		}
		if got, want := changes[0].Restart, strings.Contains(refused, "`"+f.Key+"`"); got != want {
			t.Errorf("%s needs a restart: %v; docs/operating.md says %v", f.Key, got, want)
		}
		if again := settings.Differ(after, after, fields, nil, nil); len(again) != 0 {
			t.Errorf("%s differs from itself: %+v", f.Key, again)
		}
	}
}

// assign gives a value one text.
func assign(t *testing.T, v settings.Value, text string) {
	t.Helper()
	if many, ok := v.(settings.List); ok {
		many.Clear()
	}
	err := error(nil)
	if p, ok := v.(settings.Pairs); ok {
		i := strings.LastIndex(text, ": ")
		err = p.SetPair(text[:i], text[i+2:])
	} else {
		err = v.Set(text)
	}
	if err != nil {
		t.Errorf("%q: %v", text, err)
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
