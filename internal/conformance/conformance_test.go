package conformance_test

import (
	"context"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/hookonce/hookonce/internal/conformance"
	"github.com/hookonce/hookonce/internal/testserver/throwaway"
)

// inside is set in the process that runs the suites: this test binary.
const inside = "CONFORMANCE_INSIDE"

func TestMain(m *testing.M) {
	if os.Getenv(inside) != "" {
		conformance.Serve(os.Stdin)
	}
	throwaway.TestsAtOnce(4)
	os.Exit(m.Run())
}

// examine runs the suites in a process of their own.
func examine(t testing.TB, ctx context.Context, target conformance.Target, ended func(conformance.Case)) (*conformance.Report, error) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return conformance.Examine(ctx, target, conformance.Options{
		Command: []string{"env", inside + "=1", self}, Version: "v0.0.0-test", Ended: ended,
	})
}

// examined is examine of an engine on which all can be run.
func examined(t testing.TB, target conformance.Target) *conformance.Report {
	t.Helper()
	report, err := examine(t, t.Context(), target, nil)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func exec(t testing.TB, dsn string, statements ...string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	for _, s := range statements {
		if _, err := conn.Exec(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

func query[V any](t testing.TB, dsn, sql string) V {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	var v V
	if err := conn.QueryRow(t.Context(), sql).Scan(&v); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return v
}
