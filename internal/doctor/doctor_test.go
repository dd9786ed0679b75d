package doctor

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/settings"

	"go.uber.org/goleak"

	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, pgtest.Kept()) }

// levels returns the worst level that each check found.
func levels(found []Finding) map[string]Level {
	rank := map[Level]int{OK: 0, Warning: 1, Fault: 2}
	worst := map[string]Level{}
	for _, f := range found {
		if before, ok := worst[f.Check]; !ok || rank[f.Level] > rank[before] {
			worst[f.Check] = f.Level
		}
	}
	return worst
}

// expect checks the levels of some checks, and that what is not well comes with advice.
func expect(t *testing.T, found []Finding, want map[string]Level) {
	t.Helper()
	got := levels(found)
	for check, level := range want {
		if got[check] != level {
			t.Errorf("%s: %q, want %q", check, got[check], level)
		}
	}
	for _, f := range found {
		if f.Text == "" || strings.Contains(f.Text, "%!") || strings.ContainsAny(f.Text+f.Advice, "\n") || (f.Level != OK) != (f.Advice != "") {
			t.Errorf("a finding that helps nobody: %+v", f)
		}
	}
	if t.Failed() {
		for _, f := range found {
			t.Logf("%-8s %-14s %s → %s", f.Level, f.Check, f.Text, f.Advice)
		}
	}
}

func TestHealthy(t *testing.T) {
	for level, want := range map[Level]bool{OK: true, Warning: true, Fault: false} {
		if got := Healthy([]Finding{{Level: OK}, {Level: level}}); got != want {
			t.Errorf("%s: %v", level, got)
		}
	}
}

// A check that cannot find out says so, and the next one runs.
func TestCheckThatFails(t *testing.T) {
	checks := []check[int]{
		{"broken", func(context.Context, int) ([]Finding, error) {
			return []Finding{good("half")}, errors.New("permission\ndenied")
		}},
		{"next", func(_ context.Context, n int) ([]Finding, error) { return one(good("%d", n)) }},
	}
	found := run(t.Context(), 7, checks)
	expect(t, found, map[string]Level{"broken": Warning, "next": OK})
	if len(found) != 3 || !strings.Contains(found[1].Text, "permission denied") || found[2].Text != "7" {
		t.Errorf("found %+v", found)
	}
}

func TestSecretsThatEnd(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	until := func(ends ...time.Duration) (all []settings.Secret) {
		for _, end := range ends {
			s := settings.Literal("a-fake-secret")
			if end != 0 {
				s.Until = now.Add(end)
			}
			all = append(all, s)
		}
		return all
	}
	follows := func(end, begin time.Duration) []settings.Secret {
		all := until(end, 0)
		all[1].From = now.Add(begin)
		return all
	}
	for name, tt := range map[string]struct {
		secrets []settings.Secret
		want    Level
		says    string
	}{
		"none that ends":       {until(0), OK, "none ends within 14 days"},
		"one that goes on":     {until(day, 0), OK, "secret 1 is accepted until 2026-01-02T00:00:00Z; secret 2 replaces it"},
		"one that ends late":   {until(day, 15*day), OK, "secret 2 replaces it"},
		"late enough":          {until(15 * day), OK, "none ends within 14 days"},
		"the only one":         {until(13 * day), Fault, "secret 1 is accepted until 2026-01-14T00:00:00Z, and nothing replaces it"},
		"the last ends soon":   {until(day, 13*day), Fault, "nothing replaces it"},
		"both at once":         {until(day, day), Fault, "nothing replaces it"},
		"all ended":            {until(-day, -2*day), Fault, "none of its secrets is accepted now"},
		"one ended":            {until(-day, 0), OK, "none ends within 14 days"},
		"one that follows":     {follows(day, day), OK, "secret 1 is accepted until 2026-01-02T00:00:00Z; secret 2 from 2026-01-02T00:00:00Z replaces it"},
		"one that overlaps":    {follows(day, day/2), OK, "secret 2 from 2026-01-01T12:00:00Z replaces it"},
		"one that is late":     {follows(day, 2*day), Fault, "secret 2 only from 2026-01-03T00:00:00Z: in between its events are refused"},
		"only one to come":     {follows(day, 2*day)[1:], Fault, "none of its secrets is accepted now"},
		"none (needs no such)": {nil, OK, "none ends within 14 days"},
	} {
		cfg := config.Default()
		cfg.Sources = []config.Source{{Name: "shop", Provider: "stripe", Secrets: tt.secrets}}
		found, err := secrets(t.Context(), Patient{Config: cfg, Now: func() time.Time { return now }})
		if err != nil || levels(found)[""] != tt.want || !strings.Contains(fmt.Sprint(found), tt.says) {
			t.Errorf("%s: %+v, %v; want %s, saying %q", name, found, err, tt.want, tt.says)
		}
	}
}

// The time for which ids are kept is that of the source, where it has one of its own.
func TestRetentionOfSources(t *testing.T) {
	cfg := config.Default()
	cfg.Retention.IDs = 90 * day
	cfg.Sources = []config.Source{
		{Name: "shop", Provider: "stripe"},
		{Name: "long", Provider: "stripe", Retention: config.Retention{IDs: 200 * day}},
		{Name: "charges", Mode: config.Idempotent, Idempotency: config.Idempotency{Remember: 7 * day}},
	}
	found, err := retention(t.Context(), Patient{Config: cfg})
	if err != nil || len(found) != len(cfg.Sources) {
		t.Fatalf("%+v, %v", found, err)
	}
	for i, want := range []string{"shop: stripe sends .* ids are kept for 90 days", "long: stripe sends .* ids are kept for 200 days", "charges: .* are kept for 7 days"} {
		if !regexp.MustCompile(want).MatchString(found[i].Text) {
			t.Errorf("%q, want %q", found[i].Text, want)
		}
	}
}

// TestSecretFiles: each file with a secret or a private key that every user of the machine can read
// is told of, with the setting that names it, and no other file.
func TestSecretFiles(t *testing.T) {
	dir := t.TempDir()
	cert, key := selfSigned(t)
	open := map[string]string{} // files, and the settings that name them
	write := func(name, key, content string, mode os.FileMode) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := errors.Join(os.WriteFile(path, []byte(content), mode), os.Chmod(path, mode)); err != nil { // whatever the umask
			t.Fatal(err)
		}
		if key != "" {
			open[path] = key
		}
	}
	const signing = "whsec_ZmFrZS1zZWNyZXQtb2YtYS1jaGFubmVsLWZha2U="
	write("admin", "token", "a-fake-token-for-operators", 0o644)
	write("admin-key.pem", "admin_tls.key", key, 0o644)
	write("beat", "alerts.heartbeat", "https://beat.example/fake-path", 0o644)
	write("pager", "channel oncall: url", "https://pager.example/fake-path", 0o644)
	write("signing", "channel oncall: secrets", signing, 0o604)
	write("otlp", "tracing.secret", "fake-secret-of-tracing", 0o644)
	write("ledger", "secrets", signing, 0o644)
	write("ledger-key.pem", "tls.key", key, 0o644)
	write("bearer", "headers", "Bearer fake-token", 0o644)
	write("stage", "headers", "test", 0o644)
	write("list", "reconcile.token", "fake-token-of-the-list", 0o644)
	write("app", "app_secret", "fake-secret-of-the-app", 0o644)
	write("cert.pem", "", cert, 0o644)
	write("shop", "", "whsec_fake-secret-of-the-shop", 0o640)
	write("public", "", strings.Repeat("a", 64), 0o644)
	text := strings.ReplaceAll(`
admin_tokens: [{name: ann, token: "file:DIR/admin", role: operator}]
admin_tls: {cert: DIR/cert.pem, key: DIR/admin-key.pem}
alerts:
  heartbeat: file:DIR/beat
  notify: [{name: oncall, url: "file:DIR/pager", secrets: ["file:DIR/signing"]}]
tracing: {endpoint: "http://127.0.0.1:4318", secret: "file:DIR/otlp"}
destinations:
  - name: ledger
    url: https://ledger.internal/
    secrets: ["file:DIR/ledger", "env:NAME"]
    headers: {Authorization: "file:DIR/bearer", X-Stage: "file:DIR/stage"}
    tls: {cert: DIR/cert.pem, key: DIR/ledger-key.pem}
  - {name: books, url: "https://books.internal/", sign_as: provider, app_secret: "file:DIR/app"}
sources:
  - {name: shop, provider: stripe, secrets: ["file:DIR/shop"], routes: [{to: ledger}], reconcile: {token: "file:DIR/list"}}
  - {name: bank, provider: stripe, secrets: ["file:DIR/shop"], routes: [{to: books}]}
  - {name: chat, provider: discord, secrets: ["file:DIR/public"], routes: [{to: ledger}]}
`, "DIR", dir)
	cfg, err := config.Load(config.Input{Path: "shop.yaml", Data: []byte(text), Environ: []string{"NAME=" + signing}, ReadFile: os.ReadFile})
	if err != nil {
		t.Fatal(err)
	}
	found, err := secretFiles(t.Context(), Patient{Config: cfg})
	if err != nil || len(found) != len(open) {
		t.Errorf("%d of %d files are told of (%v): %+v", len(found), len(open), err, found)
	}
	for path, key := range open {
		told := func(f Finding) bool {
			return f.Level == Warning && strings.HasPrefix(f.Text, key+" (shop.yaml:") && strings.Contains(f.Text, "every user of this machine can open "+path+" (-rw") && f.Advice == "chmod o= "+path
		}
		if !slices.ContainsFunc(found, told) {
			t.Errorf("%s, which %s names, is not told of: %+v", path, key, found)
		}
		if err := os.Chmod(path, 0o640); err != nil {
			t.Fatal(err)
		}
	}
	if found, err = secretFiles(t.Context(), Patient{Config: cfg}); err != nil || len(found) != 1 || found[0].Level != OK {
		t.Errorf("%+v, %v", found, err)
	}
}

// selfSigned returns a certificate and its key as PEM.
func selfSigned(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed})), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded}))
}

func TestClocksApart(t *testing.T) {
	for _, tt := range []struct {
		off, within time.Duration
		want        Level
	}{
		{0, 0, OK}, {time.Second, 0, OK}, {1100 * time.Millisecond, 0, Warning}, {1100 * time.Millisecond, 200 * time.Millisecond, OK},
		{10 * time.Second, 0, Warning}, {11 * time.Second, 0, Fault}, {11 * time.Second, 2 * time.Second, Warning},
	} {
		if got := apart(tt.off, tt.within); got.Level != tt.want {
			t.Errorf("%v apart, known to %v: %+v, want %s", tt.off, tt.within, got, tt.want)
		}
	}
}

func TestRoomOnTheDisk(t *testing.T) {
	for free, want := range map[uint64]Level{0: Fault, 127 << 20: Fault, 128 << 20: Warning, 1<<30 - 1: Warning, 1 << 30: OK, 1 << 50: OK} {
		if got := room(free); got.Level != want {
			t.Errorf("%d bytes free: %+v, want %s", free, got, want)
		}
	}
}

// A log is large only because somebody reads an old state of the file.
func TestLongLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.db")
	for size, want := range map[int64]Level{0: OK, longLog: OK, longLog + 1: Warning} {
		if err := os.WriteFile(path+"-wal", nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path+"-wal", size); err != nil { // a hole: it takes no room
			t.Fatal(err)
		}
		expect(t, run(t.Context(), path, []check[string]{{"log", logFile}}), map[string]Level{"log": want})
	}
}

// A file behind a link is looked at where it is: its folder, its disk and its log are there, and not beside the link.
func TestFileBehindALink(t *testing.T) {
	real, link := filepath.Join(t.TempDir(), "real.db"), filepath.Join(t.TempDir(), "app.db")
	for path, size := range map[string]int64{real: 0, real + "-wal": longLog + 1} {
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(os.Chmod(path, 0o644), os.Truncate(path, size)); err != nil { // whatever the umask; a hole
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.WriteFile(real, []byte("no database"), 0o644), os.Symlink(real, link)); err != nil {
		t.Fatal(err)
	}
	cfg := config.Default()
	cfg.Store = config.Store{Driver: config.SQLite, DSN: link}
	found := examineSQLite(t.Context(), Patient{Config: cfg, Now: time.Now})
	expect(t, found, map[string]Level{"file": OK, "log": Warning, "permissions": Warning})
	for check, want := range map[string]string{"log": "the write-ahead log has 64 MiB", "permissions": "real.db-wal, with every webhook in it"} {
		if got := texts(found, check); !strings.Contains(got, want) {
			t.Errorf("%s: %s; want %q", check, got, want)
		}
	}
}

func TestDays(t *testing.T) {
	for d, want := range map[time.Duration]string{
		24 * time.Hour: "1 day", 75 * time.Hour: "75h", 10*time.Hour + 30*time.Minute: "10h30m", 85 * time.Minute: "1h25m",
		10 * time.Minute: "10m", 15 * time.Second: "15s", 90 * time.Second: "1m30s", 30 * time.Minute: "30m",
	} {
		if got := days(d); got != want {
			t.Errorf("days(%v) = %q, want %q", d, got, want)
		}
	}
}

func TestPlural(t *testing.T) {
	for want, n := range map[string]int64{"1 day": 1, "2 days": 2} {
		if got := plural(n, "day"); got != want {
			t.Errorf("plural(%d) = %q, want %q", n, got, want)
		}
	}
	if got := plural(0, "delivery"); got != "0 deliveries" {
		t.Errorf("plural = %q", got)
	}
}
