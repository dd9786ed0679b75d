package endtoend

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
	"github.com/hookonce/hookonce/internal/testskip"
)

var pagesOver = flag.Int("pages", 20_000, "how many events are in the journal of the test that opens every page")

// TestPagesOverManyEvents opens every page of the dashboard over a journal of many events, and logs how long each took. None
// fails. With 20 million it takes about a quarter of an hour, most of it to fill the journal:
//
//	go test ./cmd/hookonce/internal/endtoend -run TestPagesOverManyEvents -v -timeout 60m -pages 20000000
func TestPagesOverManyEvents(t *testing.T) {
	testskip.Long(t)
	t.Parallel()
	dsn, n := pgtest.DSN(t), *pagesOver
	if out, err := exec.Command("hookonce", "migrate", "--store", dsn).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	began := time.Now()
	fillWeek(t, conn, n)
	t.Logf("%d events were stored in %v", n, time.Since(began).Round(time.Second))

	dir := t.TempDir()
	file := filepath.Join(dir, "hookonce.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, numbersConfig, dsn, "http://127.0.0.1:9"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := mustLaunch(t, dir, "serve", "--config", file)
	if status, out := command(os.Environ(), "destinations", "pause", "ledger", "--reason", "a look", "--admin", "http://"+p.admin); status != 0 {
		t.Fatal(out)
	}
	var recent int64
	if err := conn.QueryRow(t.Context(), `SELECT id FROM hookonce.events ORDER BY id DESC LIMIT 1`).Scan(&recent); err != nil {
		t.Fatal(err)
	}
	since := time.Now().AddDate(0, 0, -3).UTC().Format(time.RFC3339)
	for _, path := range []string{
		"/", "/failures", "/failures/ledger/status?status=409", "/events", "/events?source=orders&since=" + since, "/events?type=" + url.QueryEscape("order.*"),
		"/events?type=nothing.like.it", "/events?resource=order_77", "/events?resource=nothing", "/events?state=dead", "/events?state=failed&destination=ledger",
		"/events?state=done", "/events?seen=conflict", "/events?error=status&status=409", "/events?field=" + url.QueryEscape("json:$.n=5"),
		"/find?q=evt_5", fmt.Sprint("/events/", recent), "/events/orders/evt_2", "/destinations", "/destinations/ledger", "/sources", "/sources/orders",
		"/refused", "/store", "/audit", "/configuration", "/doctor",
	} {
		var times []time.Duration
		for range 5 {
			times = append(times, open(t, "http://"+p.admin+path))
		}
		slices.Sort(times)
		t.Logf("%-60s median %6.1f ms, at most %6.1f ms", path, ms(times[2]), ms(times[4]))
	}
	var counted []time.Duration
	for range 3 {
		begin := time.Now()
		status, out := command(os.Environ(), "events", "replay", "--state", "dead", "--dry-run", "--reason", "a look", "--admin", "http://"+p.admin)
		counted = append(counted, time.Since(begin))
		if status != 0 {
			t.Errorf("counting what a replay would do: %s", out)
		}
	}
	t.Logf("%-60s median %6.1f ms", "hookonce events replay --state dead --dry-run", ms(slices.Sorted(slices.Values(counted))[1]))
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// open reads a page as a browser does, and returns how long it took.
func open(t *testing.T, address string) time.Duration {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "text/html")
	begin := time.Now()
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	took := time.Since(begin)
	if err != nil || res.StatusCode != http.StatusOK || !strings.Contains(string(body), "</html>") {
		t.Errorf("%s: %s, %v", address, res.Status, err)
	}
	return took
}

// fillWeek stores n events of two sources as if they had come in the last week: of a thousand one is dead, one fails and one came
// again with other content; the others are done.
func fillWeek(t *testing.T, conn *pgx.Conn, n int) {
	t.Helper()
	first := journal.FirstID(time.Now().AddDate(0, 0, -7))
	step := (journal.FirstID(time.Now()) - first) / int64(n)
	for from := 1; from <= n; from += 1_000_000 {
		for _, sql := range []string{
			`INSERT INTO hookonce.events (id, source, key, event_type, resource, digest, received_at)
				SELECT $1::bigint + $2::bigint * n, CASE n % 2 WHEN 0 THEN 'orders' ELSE 'bills' END, 'evt_' || n,
					(ARRAY['order.paid', 'order.sent', 'invoice.paid'])[1 + n % 3], 'order_' || n / 10, decode(md5(n::text), 'hex'), now()
				FROM generate_series($3::bigint, $4) n`,
			`INSERT INTO hookonce.bodies (event_id, header, body)
				SELECT $1::bigint + $2::bigint * n, convert_to(E'Content-Type: application/json\r\n', 'UTF8'),
					convert_to('{"id":"evt_' || n || '","n":' || n || ',"note":"' || repeat('x', 150) || '"}', 'UTF8')
				FROM generate_series($3::bigint, $4) n`,
			`INSERT INTO hookonce.attempts (event_id, destination, token, outcome, status, started_at, duration_us, error_kind)
				SELECT $1::bigint + $2::bigint * n, 'ledger', 1, CASE WHEN n % 1000 < 2 THEN 'failed' ELSE 'done' END,
					CASE WHEN n % 1000 < 2 THEN 409 ELSE 200 END, now(), 1000, CASE WHEN n % 1000 < 2 THEN 'status' ELSE '' END
				FROM generate_series($3::bigint, $4) n`,
			`INSERT INTO hookonce.deliveries (event_id, destination, state, token, tries, due_at, last_error, error_kind, status)
				SELECT $1::bigint + $2::bigint * n, 'ledger', CASE n % 1000 WHEN 0 THEN 'dead' ELSE 'failed' END, 1, 1,
					CASE n % 1000 WHEN 0 THEN NULL ELSE now() + interval '1 day' END, 'status 409', 'status', 409
				FROM generate_series($3::bigint, $4) n WHERE n % 1000 < 2`,
			`INSERT INTO hookonce.sightings (event_id, kind, n, first_at, last_at, copies)
				SELECT $1::bigint + $2::bigint * n, 'conflict', 1, now(), now(), 1 FROM generate_series($3::bigint, $4) n WHERE n % 1000 = 2`,
		} {
			if _, err := conn.Exec(t.Context(), sql, first, step, from, min(from+999_999, n)); err != nil {
				t.Fatalf("%v\n%s", err, sql)
			}
		}
	}
	for _, sql := range []string{"VACUUM (ANALYZE)", "CHECKPOINT"} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
}
