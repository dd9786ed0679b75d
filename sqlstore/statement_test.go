package sqlstore

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"math"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// A database that counts parameters by their place gets an argument as often as the text has it.
func TestParametersByPlace(t *testing.T) {
	const text = "UPDATE {{.}}claims SET a = @2, b = @10 WHERE {{.Key}} = @1 AND c = @2"
	args := []any{"one", "two", 3, 4, 5, 6, 7, 8, 9, "ten"}
	byNumber := language{prefix: "x_", placeholder: "$", Key: "key"}.statement(text)
	if want := "UPDATE x_claims SET a = $2, b = $10 WHERE key = $1 AND c = $2"; byNumber.text != want || !slices.Equal(byNumber.arguments(args), args) {
		t.Errorf("%q with %v", byNumber.text, byNumber.arguments(args))
	}
	byPlace := language{prefix: "x_", Key: "`key`"}.statement(text)
	if want := "UPDATE x_claims SET a = ?, b = ? WHERE `key` = ? AND c = ?"; byPlace.text != want {
		t.Errorf("%q", byPlace.text)
	}
	if got := byPlace.arguments(args); !slices.Equal(got, []any{"two", "ten", "one", "two"}) {
		t.Errorf("arguments %v", got)
	}
}

// No text keeps a word in braces that no database would understand, except for the one that stands for the
// numbers of rows until they are known.
func TestEveryWordIsReplaced(t *testing.T) {
	word := regexp.MustCompile(`\{[a-z ]+\}`)
	for d, kind := range dialects {
		for _, found := range word.FindAllString(fmt.Sprintf("%+v", kind("x_").statements), -1) {
			if found != "{ids}" {
				t.Errorf("dialect %s: %s", d, found)
			}
		}
	}
}

var update = flag.Bool("update", false, "write the golden files")

// What each database is asked is in a file, so that a change of what decides is seen in each statement that it is in.
func TestStatements(t *testing.T) {
	for d, kind := range dialects {
		texts := map[string]string{}
		s := kind("hookonce_").statements
		for i, v := 0, reflect.ValueOf(s); i < v.NumField(); i++ {
			if f := v.Field(i); f.Kind() == reflect.Struct && f.FieldByName("text").String() != "" {
				texts[v.Type().Field(i).Name] = f.FieldByName("text").String()
			}
		}
		for state, list := range s.effects {
			texts["effects, "+string(state)] = list.text
		}
		for what, p := range s.dooms {
			for step, st := range map[string]statement{"next": p.next, "count": p.count, "look": p.look, "along": p.along, "rows": p.rows} {
				if st.text != "" {
					texts["purge "+what+", "+step] = st.text
				}
			}
		}
		var b strings.Builder
		for _, name := range slices.Sorted(maps.Keys(texts)) {
			fmt.Fprintf(&b, "-- %s\n%s\n\n", name, strings.TrimSpace(texts[name]))
		}
		golden := "testdata/" + string(d) + ".golden.sql"
		if *update {
			if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if want, err := os.ReadFile(golden); err != nil || b.String() != string(want) {
			t.Errorf("the statements are not those of %s (%v); if the change is meant, run go test -run TestStatements ./sqlstore -update", golden, err)
		}
	}
}

func TestSeconds(t *testing.T) {
	for wait, want := range map[time.Duration]int64{
		-time.Second: 1, 0: 1, time.Millisecond: 1, time.Second: 1, time.Second + 1: 2, time.Minute: 60, math.MaxInt64: math.MaxInt64/int64(time.Second) + 1,
	} {
		if got := seconds(wait); got != want {
			t.Errorf("seconds(%v) = %d, want %d", wait, got, want)
		}
	}
}

// The drivers' errors are told apart by the field alone, wrapped, joined or neither.
func TestNumberIn(t *testing.T) {
	type answer struct {
		error
		Number uint16
	}
	type code struct {
		error
		Code int
	}
	for _, tt := range []struct {
		err   error
		field string
		want  int
	}{
		{nil, "Number", 0},
		{errors.New("no number"), "Number", 0},
		{&answer{Number: 1205}, "Number", 1205},
		{fmt.Errorf("wrapped: %w", &answer{Number: 1213}), "Number", 1213},
		{errors.Join(errors.New("no number"), &answer{Number: 1213}), "Number", 1213},
		{fmt.Errorf("%w: %w", &answer{Number: 1213}, errors.New("no number")), "Number", 1213},
		{fmt.Errorf("%w: %w", errors.New("no number"), errors.Join(nil, fmt.Errorf("wrapped: %w", &answer{Number: 1213}))), "Number", 1213},
		{errors.Join(code{Code: 5}, &answer{Number: 1205}, &answer{Number: 1213}), "Number", 1205},
		{errors.Join(errors.New("no number"), errors.New("none either")), "Number", 0},
		{code{Code: 5}, "Code", 5},
		{code{Code: 5}, "Number", 0},
	} {
		if got := numberIn(tt.err, tt.field); got != tt.want {
			t.Errorf("numberIn(%#v, %q) = %d, want %d", tt.err, tt.field, got, tt.want)
		}
	}
}
