package claimsql_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"maps"

	"github.com/hookonce/hookonce/internal/claimsql"
)

var update = flag.Bool("update", false, "write the golden files")

// What PostgreSQL is asked is in a file, so that a change of what decides is seen in each statement that it is in.
func TestStatements(t *testing.T) {
	texts := map[string]string{"Number": claimsql.Number, "Intact": claimsql.Intact, "Status": claimsql.Status}
	s := claimsql.Postgres(`"hookonce".`, "hookonce_claims")
	for i, v := 0, reflect.ValueOf(s); i < v.NumField(); i++ {
		if v.Field(i).Kind() == reflect.String {
			texts[v.Type().Field(i).Name] = v.Field(i).String()
		}
	}
	for state, text := range s.Effects {
		texts["Effects "+state] = text
	}
	for what, p := range s.Purge {
		texts["Purge "+what+", next"], texts["Purge "+what+", count"], texts["Purge "+what+", delete"] = p.Next, p.Count, p.Delete
	}
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		fmt.Fprintf(&b, "-- %s\n%s\n\n", name, strings.TrimSpace(texts[name]))
	}
	const golden = "testdata/postgres.golden.sql"
	if *update {
		if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil || b.String() != string(want) {
		t.Errorf("the statements are not those of %s (%v); if the change is meant, run go test -update ./internal/claimsql", golden, err)
	}
	for name, text := range texts {
		if strings.Contains(text, "<no value>") || strings.Contains(text, "{{") {
			t.Errorf("%s is not expanded: %s", name, text)
		}
	}
}

// What became of a transaction is known where the server is sure of it.
func TestCommitted(t *testing.T) {
	for status, known := range map[string]bool{"committed": true, "aborted": true, "in progress": false, "forgotten": false} {
		if committed, err := claimsql.Committed(status); committed != (status == "committed") || (err == nil) != known {
			t.Errorf("%s: committed: %v, %v", status, committed, err)
		}
	}
}

// Where nobody is to be told, nothing is.
func TestNobodyIsTold(t *testing.T) {
	s := claimsql.Postgres("x.", "")
	for name, text := range map[string]string{"Complete": s.Complete, "Fail": s.Fail, "Forget": s.Forget, "CompleteWith": s.CompleteWith} {
		if strings.Contains(text, "pg_notify") {
			t.Errorf("%s: %s", name, text)
		}
	}
	if text := claimsql.Postgres("x.", "c").Extend; strings.Contains(text, "pg_notify") {
		t.Errorf("an extended lease ends nothing: %s", text)
	}
}

// Retry goes on for the time that it is given, and for so many tries at least; an error of another kind ends it, and
// so does the context, which is named.
func TestRetry(t *testing.T) {
	race, other := errors.New("race"), errors.New("other")
	for name, tt := range map[string]struct {
		wait         time.Duration
		least, fails int
		then         error
		min, max     int // tries
		want         error
	}{
		"at once":            {time.Second, 1, 0, nil, 1, 1, nil},
		"after some":         {time.Minute, 1, 5, nil, 6, 6, nil},
		"another error":      {time.Minute, 1, 2, other, 3, 3, other},
		"until the end":      {100 * time.Millisecond, 1, 1 << 20, nil, 2, 1 << 19, race},
		"so many at least":   {0, 8, 1 << 20, nil, 8, 8, race},
		"no time, and one":   {0, 1, 1 << 20, nil, 1, 1, race},
		"time for the least": {time.Hour, 2, 3, nil, 4, 4, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tries, began := 0, time.Now()
				err := claimsql.Retry(t.Context(), tt.wait, tt.least, func(err error) bool { return errors.Is(err, race) }, func() error {
					if tries++; tries <= tt.fails {
						return race
					}
					return tt.then
				})
				if !errors.Is(err, tt.want) || tries < tt.min || tries > tt.max {
					t.Errorf("%d tries, %v", tries, err)
				}
				if took := time.Since(began); tt.least == 1 && took > tt.wait+25*time.Millisecond {
					t.Errorf("it took %v", took)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		cause := errors.New("the deploy")
		ctx, cancel := context.WithCancelCause(t.Context())
		err := claimsql.Retry(ctx, time.Hour, 1, func(error) bool { return true }, func() error { cancel(cause); return race })
		if !errors.Is(err, cause) || !errors.Is(err, race) {
			t.Errorf("%v", err)
		}
	})
}
