package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/ddl"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
)

func TestAdmin(t *testing.T) {
	t.Parallel()
	cfg := configured(sqliteStore(t), "http://127.0.0.1:1/")
	g, c := start(t, cfg), client(t)
	for _, want := range []struct {
		path        string
		status      int
		contentType string
		body        string
	}{
		{"/healthz", 200, "text/plain", "ok"},
		{"/readyz", 200, "text/plain", "ready"},
		{"/metrics", 200, "text/plain", "hookonce_"},
		{"/", 200, "text/html", "hookonce"},
		{"/nothing", 404, "application/problem+json", "there is nothing here"},
		{"/in/orders", 404, "application/problem+json", "there is nothing here"},
	} {
		res, body := get(t, c, g, want.path)
		if res.StatusCode != want.status || !strings.HasPrefix(res.Header.Get("Content-Type"), want.contentType) || !strings.Contains(body, want.body) {
			t.Errorf("%s: %d %s %.200q", want.path, res.StatusCode, res.Header.Get("Content-Type"), body)
		}
	}
	_, body := get(t, c, g, "/nothing")
	var problem struct{ Status int }
	if err := json.Unmarshal([]byte(body), &problem); err != nil || problem.Status != 404 {
		t.Errorf("problem details: %s (%v)", body, err)
	}
}

// A gateway that stops is not ready from the first moment on, while what is under way still finishes.
func TestNotReadyWhileStopping(t *testing.T) {
	t.Parallel()
	release, arrived := make(chan struct{}), make(chan struct{})
	slow := newSink(t)
	answer := sync.OnceFunc(func() { close(release) })
	t.Cleanup(answer)
	slow.Config.Handler = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(arrived)
		<-release
	})
	cfg := configured(sqliteStore(t), slow.URL)
	g, c := start(t, cfg), client(t)
	insist(t, c, g, cfg.Sources[0], event("a"))
	<-arrived
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		closeNow(t, g)
	}()
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		if res, _ := get(t, c, g, "/readyz"); res.StatusCode == http.StatusServiceUnavailable {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("readyz still says ready")
		}
	}
	answer()
	<-closed
}

// Each failure to start is one line that says what to do, and leaves nothing running.
func TestStartFailures(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, c := range []struct {
		name   string
		change func(t *testing.T, cfg *config.Config)
		want   []string
	}{
		{"listen taken", func(_ *testing.T, cfg *config.Config) { cfg.Listen = taken.Addr().String() },
			[]string{taken.Addr().String(), "taken by another program", "--listen"}},
		{"admin taken", func(_ *testing.T, cfg *config.Config) { cfg.Admin = taken.Addr().String() },
			[]string{taken.Addr().String(), "--admin"}},
		{"an address of another machine", func(_ *testing.T, cfg *config.Config) { cfg.Listen = "192.0.2.1:0" },
			[]string{"192.0.2.1:0", "--listen"}},
		{"folder does not exist", func(t *testing.T, cfg *config.Config) { cfg.Store.DSN = t.TempDir() + "/none/hookonce.db" },
			[]string{"store: ", "/none/hookonce.db", "create it"}},
		{"database away", func(_ *testing.T, cfg *config.Config) {
			cfg.Store = config.Store{Driver: config.Postgres, DSN: "postgres://u:hunter2@127.0.0.1:1/db"}
		}, []string{"store postgres://u:****@127.0.0.1:1/db", "start the database"}},
		{"bad DSN", func(_ *testing.T, cfg *config.Config) {
			cfg.Store = config.Store{Driver: config.Postgres, DSN: "postgres://u:hunter2@127.0.0.1:1/db?sslmode=maybe"}
		}, []string{"sslmode", "correct --store"}},
		{"no tables and no migration", func(t *testing.T, cfg *config.Config) {
			cfg.Store, cfg.Migrate = postgresStore(t), false
		}, []string{"hookonce migrate"}},
		{"a role that may not create", func(t *testing.T, cfg *config.Config) {
			cfg.Store = config.Store{Driver: config.Postgres, DSN: powerless(t)}
		}, []string{"permission denied", "hookonce migrate"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := configured(sqliteStore(t), "http://127.0.0.1:1/")
			c.change(t, cfg)
			g, err := Start(t.Context(), cfg, Options{})
			if err == nil {
				closeNow(t, g)
				t.Fatal("it started")
			}
			text := err.Error()
			if strings.Contains(text, "\n") || strings.Contains(text, "hunter2") {
				t.Errorf("not one line without a password: %s", text)
			}
			for _, part := range c.want {
				if !strings.Contains(text, part) {
					t.Errorf("%q does not mention %q", text, part)
				}
			}
		})
	}
}

// powerless returns the DSN of a role without any rights.
func powerless(t *testing.T) string {
	dsn := pgtest.DSN(t)
	execSQL(t, dsn, "CREATE ROLE powerless LOGIN")
	t.Cleanup(func() { execSQL(t, dsn, "DROP ROLE powerless") })
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.User("powerless")
	return u.String()
}

func execSQL(t *testing.T, dsn, sql string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, sql); err != nil {
		t.Fatal(err)
	}
}

// A gateway starts on a database that a newer program migrated if that program left room for it, and leaves it alone
// otherwise.
func TestNewerSchema(t *testing.T) {
	t.Parallel()
	cfg := configured(postgresStore(t), "http://127.0.0.1:1/")
	if _, _, err := Migrate(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	execSQL(t, cfg.Store.DSN, fmt.Sprintf("INSERT INTO hookonce.goose_db_version (version_id, is_applied, oldest) VALUES (998, true, %d)", ddl.Version()))
	start(t, cfg)
	execSQL(t, cfg.Store.DSN, "INSERT INTO hookonce.goose_db_version (version_id, is_applied, oldest) VALUES (999, true, 999)")
	_, err := Start(t.Context(), cfg, Options{})
	if !errors.Is(err, hookonce.ErrSchemaNewer) {
		t.Errorf("err = %v", err)
	}
}

// One process owns a SQLite file: a second one would believe that the first is dead, and take over
// its deliveries.
func TestSecondProcessOnOneFileIsRefused(t *testing.T) {
	t.Parallel()
	cfg := configured(sqliteStore(t), "http://127.0.0.1:1/")
	start(t, cfg)
	g, err := Start(t.Context(), cfg, Options{})
	if err == nil {
		closeNow(t, g)
		t.Fatal("it started")
	}
	if text := err.Error(); strings.Contains(text, "\n") || !strings.Contains(text, cfg.Store.DSN) {
		t.Errorf("not one line with the file's name: %s", text)
	}
}

// Neither bodies nor secrets reach the log, at any level, when all goes well and when it does not.
func TestLogHoldsNoBodyAndNoSecret(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	sink := newSink(t)
	sink.answer = func(string, int) int { return http.StatusTeapot }
	cfg := configured(sqliteStore(t), sink.URL)
	cfg.Delivery.Attempts = 2
	logger := slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	g, err := Start(t.Context(), cfg, Options{Logger: logger})
	if err != nil {
		t.Fatal(err)
	}
	c := client(t)
	body := []byte(`{"id":"logged-id","type":"order.paid","card":"4242-4242"}`)
	insist(t, c, g, cfg.Sources[0], body)
	insist(t, c, g, cfg.Sources[0], body)
	if _, err := postSigned(c, g, "orders", http.Header{"X-Signature": {"feedface"}}, body); err != nil {
		t.Fatal(err)
	}
	sink.await(t, "two attempts", func() bool { return sink.seen["logged-id"] >= 2 })
	closeNow(t, g)
	text := log.String()
	for _, forbidden := range []string{"4242-4242", "secret-of-orders", "feedface"} {
		if strings.Contains(text, forbidden) {
			t.Errorf("the log holds %q:\n%s", forbidden, text)
		}
	}
	for _, expected := range []string{"logged-id", `"source":"orders"`, "order.paid", "accepted", "duplicate"} {
		if !strings.Contains(text, expected) {
			t.Errorf("the log lacks %q:\n%s", expected, text)
		}
	}
}

// A gateway that runs ends with its context, cleanly.
func TestWaitEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	running, logs := io.Pipe()
	logger := slog.New(slog.NewTextHandler(logs, nil))
	result := make(chan error, 1)
	go func() {
		g, err := Start(ctx, configured(sqliteStore(t), "http://127.0.0.1:1/"), Options{Logger: logger})
		if err == nil {
			err = g.Wait(ctx)
		}
		result <- err
		logs.Close()
	}()
	if _, err := running.Read(make([]byte, 1)); err != nil { // the first line says that it runs
		t.Fatal(err)
	}
	cancel()
	if _, err := io.Copy(io.Discard, running); err != nil {
		t.Fatal(err)
	}
	if err := <-result; err != nil {
		t.Error(err)
	}
}
