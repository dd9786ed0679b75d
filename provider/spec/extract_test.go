package spec

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/hookonce/hookonce"
)

// Scopes of different things differ, and nothing is put into a scope that is not wholly known: events
// that share one wait for each other, and make each other stale.
func TestScope(t *testing.T) {
	resource := plain()
	resource.Event.Resource = []Value{"json:$.object", "json:$.other"}
	tenant := resource
	tenant.Event.Tenant = []Value{"json:$.account"}
	scoped := tenant
	scoped.Order = &Order{By: "json:$.v", Scope: []Value{"json:$.kind", "json:$.object"}}
	long := strings.Repeat("x", 300)
	for _, c := range []struct {
		name string
		spec Spec
		body string
		want string
	}{
		{"none", plain(), `{"object":"o"}`, ""},
		{"absent", resource, `{"id":"a"}`, ""},
		{"the resource", resource, `{"object":"o"}`, "o"},
		{"another one", resource, `{"other":"p"}`, "p"},
		{"of a tenant", tenant, `{"object":"o","account":"acct"}`, hookonce.JoinKey("acct", "o")},
		{"of nobody", tenant, `{"object":"o"}`, "o"},
		{"what looks like both", tenant, `{"object":"4:acct1:o"}`, "9:4:acct1:o"},
		{"a tenant alone", tenant, `{"account":"acct"}`, ""},
		{"more than the resource", scoped, `{"object":"o","account":"acct","kind":"issue"}`, hookonce.JoinKey("acct", "issue", "o")},
		{"of which a part lacks", scoped, `{"object":"o","account":"acct"}`, ""},
		{"not cut", resource, `{"object":"` + long + `"}`, hookonce.NormalKey(long)},
		{"digested", resource, `{"object":"a\nb"}`, hookonce.NormalKey("a\nb")},
		{"ambiguous", resource, `{"object":"o","object":"p"}`, ""},
	} {
		d := open(t, build1(t, c.spec, Settings{}), c.body)
		if got := d.Events[0].Scope; got != c.want {
			t.Errorf("%s: scope %q, want %q", c.name, got, c.want)
		}
	}
}

func TestRank(t *testing.T) {
	none, at, second := hookonce.Rank{}, time.Date(2026, 2, 3, 4, 5, 6, 7000, time.UTC), hookonce.Timestamp(time.Unix(1770091506, 0))
	for _, c := range []struct {
		unit Unit
		text string
		want hookonce.Rank
	}{
		{"", `7`, hookonce.Version(7)}, {"", `"007"`, hookonce.Version(7)}, {"", `0`, hookonce.Version(0)},
		{"", `"x"`, none}, {"", `-1`, none}, {"", `1.5`, none}, {"", `null`, none},
		{"", `999999999999999999`, hookonce.Version(999999999999999999)}, {"", `9999999999999999999`, none},
		{Seconds, `1770091506`, second}, {Seconds, `"1770091506.5"`, second}, {Millis, `1770091506007`, hookonce.Timestamp(time.UnixMilli(1770091506007))},
		{RFC3339, `"2026-02-03T04:05:06.000007Z"`, hookonce.Timestamp(at)}, {RFC3339, `"2026-02-03T05:05:06.000007+01:00"`, hookonce.Timestamp(at)},
		{RFC3339, `"soon"`, none}, {RFC3339, `"0001-01-01T00:00:00Z"`, none}, {Seconds, `""`, none}, {Seconds, `0`, none},
	} {
		s := plain()
		s.Order = &Order{By: "json:$.at", Unit: c.unit}
		d := open(t, build1(t, s, Settings{}), `{"at":`+c.text+`}`)
		if got := d.Events[0].Rank; got != c.want {
			t.Errorf("%s in %q: %v, want %v", c.text, c.unit, got, c.want)
		}
	}
}

// TestRankAhead: a sender, or a stranger where no signature covers it, that says it is next year, would make everything
// until then stale. Of a clock that is wrong by hours nothing is lost.
func TestRankAhead(t *testing.T) {
	s := plain()
	s.Order = &Order{By: "json:$.at", Unit: Seconds}
	p := build1(t, s, Settings{})
	l := listed()
	l.Order = s.Order
	listing := build1(t, l, Settings{Secrets: Secrets("fake-secret")})
	for ahead, ranked := range map[time.Duration]bool{-365 * 24 * time.Hour: true, 23 * time.Hour: true, 25 * time.Hour: false, 365 * 24 * time.Hour: false} {
		d := open(t, p, fmt.Sprintf(`{"id":"e","at":%d}`, now.Add(ahead).Unix()))
		listed, err := listing.Listed(nil, fmt.Appendf(nil, `{"id":"e","at":%d}`, now.Add(ahead).Unix()), now)
		if err != nil {
			t.Fatal(err)
		}
		for _, got := range []hookonce.Rank{d.Events[0].Rank, listed[0].Rank} {
			if got.IsZero() == ranked {
				t.Errorf("%s ahead: %v", ahead, got)
			}
		}
	}
}

// TestLabelsAreBounded: what stands for a character that no header carries is longer than the character.
func TestLabelsAreBounded(t *testing.T) {
	for name, text := range map[string]string{
		"tabs": strings.Repeat("\t", 1000), "not UTF-8": strings.Repeat("a\xff", 1000), "controls of two bytes": strings.Repeat("\u0085", 1000),
		"long characters": strings.Repeat("\U0001F512", 1000), "as long as it may be": strings.Repeat("\t", maxLabel), "plain": strings.Repeat("a", 1000),
	} {
		if got := label(text); len(got) > maxLabel || len(got) < maxLabel-utf8.UTFMax || !utf8.ValidString(got) || strings.ContainsAny(got, "\t\u0085") {
			t.Errorf("%s: %d bytes, %q", name, len(got), got)
		}
	}
}
