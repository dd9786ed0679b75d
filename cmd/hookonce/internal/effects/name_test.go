package effects

import (
	"database/sql"
	"strings"
	"testing"
)

func TestQuote(t *testing.T) {
	tests := []struct{ name, want string }{
		{"payments", `"payments"`}, {"Payments", `"payments"`}, {"shop.payments", `"shop"."payments"`}, {"_a$1", `"_a$1"`},
		{`"Payments"`, `"Payments"`}, {`"a.b".c`, `"a.b"."c"`}, {`shop."a""b"`, `"shop"."a""b"`}, {`"ä ; --"`, `"ä ; --"`},
		{"", ""}, {".", ""}, {"a.", ""}, {".a", ""}, {"a..b", ""}, {"a.b.c", ""}, {`"`, ""}, {`""`, ""}, {`"a`, ""}, {`"a"b`, ""}, {`a"b"`, ""},
		{"1a", ""}, {"a b", ""}, {"a;", ""}, {"a--", ""}, {"ä", ""}, {"a\x00", ""}, {"\"a\x00\"", ""}, {"a\n", ""}, {`"a".`, ""},
	}
	for _, tt := range tests {
		got, err := quote(tt.name, 2)
		if (err != nil) != (tt.want == "") || (err == nil && got != tt.want) {
			t.Errorf("quote(%q) = %s, %v; want %s", tt.name, got, err, tt.want)
		}
	}
}

// Whatever is accepted is one name for the database, which finds the table of that name and nothing else.
func FuzzQuote(f *testing.F) {
	for _, seed := range []string{"payments", `"a""b"`, `a"; DROP TABLE t; --`, "a.b", `"a.b"`, `""""`, "'", "]", "`", "a\x00b", `\"`, "\"\xff\""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		quoted, err := quote(name, 1)
		if err != nil {
			return
		}
		inner := strings.ReplaceAll(quoted[1:len(quoted)-1], `""`, "")
		if strings.Contains(inner, `"`) || strings.HasPrefix(strings.Trim(quoted, `"`), "sqlite_") {
			if strings.Contains(inner, `"`) {
				t.Fatalf("quote(%q) = %s, which ends early", name, quoted)
			}
			return
		}
		db, err := sql.Open("sqlite", ":memory:")
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		var n int
		if _, err := db.Exec("CREATE TABLE " + quoted + " (a)"); err != nil {
			t.Fatalf("%s: %v", quoted, err)
		}
		if err := db.QueryRow("SELECT count(*) FROM sqlite_master").Scan(&n); err != nil || n != 1 {
			t.Fatalf("%s made %d tables, %v", quoted, n, err)
		}
	})
}

func TestCheck(t *testing.T) {
	good := Question{Table: "t", Event: "e"}
	for want, change := range map[string]func(*Question){
		"":                       func(*Question) {},
		"must be named":          func(q *Question) { q.Table = "" },
		"event column":           func(q *Question) { q.Event = "a.b" },
		"source column":          func(q *Question) { q.Source = "a b" },
		"time column":            func(q *Question) { q.Time = "a'" },
		"claims or events":       func(q *Question) { q.Lost, q.Only = "everywhere", "s" },
		"which source the table": func(q *Question) { q.Lost = Claims },
		"name the column":        func(q *Question) { q.Only = "s" },
	} {
		q := good
		change(&q)
		err := q.Check()
		if (err == nil) != (want == "") || (err != nil && !strings.Contains(err.Error(), want)) {
			t.Errorf("%+v: %v; want %q", q, err, want)
		}
	}
}
