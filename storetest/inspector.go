package storetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
)

// RunInspector checks what a store lists for people. The stores that cfg opens must implement [hookonce.Inspector],
// [hookonce.Guards] and [hookonce.Outbox].
func RunInspector[Tx any](t *testing.T, cfg TxConfig[Tx]) {
	cfg.cases(t, "inspector", []txCase[Tx]{
		{"an empty database has nothing", inspectNothing[Tx]},
		{"claims by state, source, key and age", inspectClaims[Tx]},
		{"many claims of a source by their keys", inspectManyKeys[Tx]},
		{"pages of claims neither repeat nor leave out", inspectClaimPages[Tx]},
		{"counts of claims are bounded", inspectClaimCounts[Tx]},
		{"effects that are open, dead, and of a claim", inspectEffects[Tx]},
		{"guards by name", inspectGuards[Tx]},
	})
}

func (f *txFixture[Tx]) inspector(t testing.TB) hookonce.Inspector {
	t.Helper()
	i, is := f.TxStore.(hookonce.Inspector)
	if !is {
		t.Fatalf("%T is no Inspector", f.TxStore)
	}
	return i
}

func inspectNothing[Tx any](t *testing.T, f *txFixture[Tx]) {
	ctx, i := t.Context(), f.inspector(t)
	sources, err := i.Sources(ctx)
	claims, err2 := i.ListClaims(ctx, hookonce.ClaimQuery{Limit: 10})
	keyed, err3 := i.ListClaims(ctx, hookonce.ClaimQuery{Key: "evt_1", Limit: 10})
	counts, err4 := i.CountClaims(ctx, 10)
	effects, err5 := i.ListEffects(ctx, hookonce.EffectQuery{Limit: 10})
	names, err6 := i.CountEffects(ctx, 10)
	guards, err7 := i.ListGuards(ctx, hookonce.GuardVersions, "", 10)
	found, err8 := i.Reconciliations(ctx, 10)
	ok(t, errors.Join(err, err2, err3, err4, err5, err6, err7, err8))
	if n := len(sources) + len(claims) + len(keyed) + len(counts) + len(effects) + len(names) + len(guards) + len(found); n != 0 {
		t.Errorf("%d things in an empty database", n)
	}
}

// mixed leaves a claim of each kind, a minute apart, and returns their keys by what they are.
func (f *txFixture[Tx]) mixed(t testing.TB) {
	t.Helper()
	ctx := t.Context()
	claim := func(source, key string, end func(hookonce.Claim) error) {
		t.Helper()
		req := request(key)
		req.Source = source
		c, err := f.Claim(ctx, req)
		ok(t, err)
		ok(t, end(c))
		f.clock.Advance(time.Minute)
	}
	failed := func(dead bool) func(hookonce.Claim) error {
		return func(c hookonce.Claim) error {
			return f.Fail(ctx, c, hookonce.Failure{Err: errors.New("declined"), Dead: dead})
		}
	}
	claim("billing", "stuck", func(hookonce.Claim) error { return nil })
	f.clock.Advance(2 * lease)
	claim("billing", "failed", failed(false))
	claim("shop", "failed", failed(false))
	claim("billing", "dead", failed(true))
	claim("billing", "done", func(c hookonce.Claim) error { return f.Complete(ctx, c) })
	claim("shop", "done", func(c hookonce.Claim) error { return f.Complete(ctx, c) })
	f.clock.Advance(-time.Minute)
	claim("billing", "held", func(hookonce.Claim) error { return nil })
	f.clock.Advance(-time.Minute)
}

func refs(claims []hookonce.Claim) (all []string) {
	for _, c := range claims {
		all = append(all, c.String())
	}
	return all
}

func inspectClaims[Tx any](t *testing.T, f *txFixture[Tx]) {
	ctx, i := t.Context(), f.inspector(t)
	f.mixed(t)
	sources, err := i.Sources(ctx)
	if err != nil || !slices.Equal(sources, []string{"billing", "shop"}) {
		t.Errorf("the sources are %v, %v", sources, err)
	}
	dead, err := f.Lookup(ctx, hookonce.Ref{Source: "billing", Key: "dead"})
	ok(t, err)
	for name, c := range map[string]struct {
		q    hookonce.ClaimQuery
		want string
	}{
		"all that are open":     {hookonce.ClaimQuery{}, "billing/held billing/dead shop/failed billing/failed billing/stuck"},
		"of a source":           {hookonce.ClaimQuery{Source: "shop"}, "shop/failed"},
		"failed":                {hookonce.ClaimQuery{States: []hookonce.State{hookonce.StateFailed}}, "shop/failed billing/failed"},
		"failed and dead":       {hookonce.ClaimQuery{States: []hookonce.State{hookonce.StateFailed, hookonce.StateDead}}, "billing/dead shop/failed billing/failed"},
		"lapsed":                {hookonce.ClaimQuery{Lapsed: true}, "billing/stuck"},
		"done of a source":      {hookonce.ClaimQuery{States: []hookonce.State{hookonce.StateDone}, Source: "billing"}, "billing/done"},
		"done of all sources":   {hookonce.ClaimQuery{States: []hookonce.State{hookonce.StateDone}}, ""},
		"no state that is":      {hookonce.ClaimQuery{States: []hookonce.State{"' OR '1'='1"}}, ""},
		"a key":                 {hookonce.ClaimQuery{Key: "done"}, "shop/done billing/done"},
		"a key of a source":     {hookonce.ClaimQuery{Key: "done", Source: "shop"}, "shop/done"},
		"a key in a state":      {hookonce.ClaimQuery{Key: "failed", States: []hookonce.State{hookonce.StateDead}}, ""},
		"a key that is not":     {hookonce.ClaimQuery{Key: "nothing"}, ""},
		"from a time":           {hookonce.ClaimQuery{From: dead.UpdatedAt}, "billing/held billing/dead"},
		"until a time":          {hookonce.ClaimQuery{Until: dead.UpdatedAt}, "shop/failed billing/failed billing/stuck"},
		"an attack as a source": {hookonce.ClaimQuery{Source: "' OR ''='"}, ""},
	} {
		c.q.Limit = 10
		found, err := i.ListClaims(ctx, c.q)
		if got := strings.Join(refs(found), " "); err != nil || got != c.want {
			t.Errorf("%s: %s, %v; want %s", name, got, err, c.want)
		}
	}
	found, err := i.ListClaims(ctx, hookonce.ClaimQuery{Key: "dead", Limit: 1})
	ok(t, err)
	if len(found) != 1 || found[0].LastError != "declined" || !found[0].UpdatedAt.Equal(dead.UpdatedAt) || found[0].Token != dead.Token || found[0].Type != dead.Type {
		t.Errorf("the list has %+v, and Lookup %+v", found, dead)
	}
	if found, err := i.ListClaims(ctx, hookonce.ClaimQuery{}); err != nil || len(found) > 0 {
		t.Errorf("without a limit: %v, %v", found, err)
	}
}

func inspectManyKeys[Tx any](t *testing.T, f *txFixture[Tx]) {
	ctx, i := t.Context(), f.inspector(t)
	f.mixed(t)
	odd := []string{`a"b`, `a\b`, "a,b", "evt ", "évt", "EVT", "' OR ''='", strings.Repeat("k", hookonce.MaxKeyLen)}
	for _, key := range odd {
		_, err := f.Claim(ctx, request(key))
		ok(t, err)
	}
	find := func(source string, keys ...string) string {
		t.Helper()
		found, err := i.FindClaims(ctx, source, keys)
		ok(t, err)
		var all []string
		for _, c := range found {
			all = append(all, c.Key+":"+string(c.State))
		}
		slices.Sort(all)
		return strings.Join(all, " ")
	}
	if got, want := find("billing", "done", "dead", "failed", "stuck", "held", "done", "nothing"), "dead:dead done:done failed:failed held:processing stuck:processing"; got != want {
		t.Errorf("of one source: %s, want %s", got, want)
	}
	if got, want := find("shop", "done", "dead"), "done:done"; got != want {
		t.Errorf("of the other: %s, want %s", got, want)
	}
	if got := find("billing", "", "a\x00b", "\xff", strings.Repeat("k", hookonce.MaxKeyLen+1), "evt%", "Done") + find("nobody", "done") + find("", "done") + find("billing"); got != "" {
		t.Errorf("of keys that no claim has: %s", got)
	}
	if found, err := i.FindClaims(ctx, request("").Source, odd); err != nil || len(found) != len(odd) {
		t.Errorf("odd keys: %v, %v", refs(found), err)
	}
	want, err := f.Lookup(ctx, hookonce.Ref{Source: "billing", Key: "dead"})
	ok(t, err)
	found, err := i.FindClaims(ctx, "billing", []string{"dead"})
	if err != nil || len(found) != 1 || !found[0].UpdatedAt.Equal(want.UpdatedAt) || !found[0].FirstSeen.Equal(want.FirstSeen) || found[0].LastError != want.LastError {
		t.Errorf("found %+v, %v; Lookup has %+v", found, err, want)
	}
	many := []string{"done"}
	for n := range hookonce.MaxFind - 1 {
		many = append(many, fmt.Sprint("none_", n))
	}
	if got := find("billing", many...); got != "done:done" {
		t.Errorf("among as many as may be: %s", got)
	}
	if _, err := i.FindClaims(ctx, "billing", append(many, "more")); err == nil {
		t.Error("more keys than may be were taken")
	}
}

func inspectClaimPages[Tx any](t *testing.T, f *txFixture[Tx]) {
	ctx, i := t.Context(), f.inspector(t)
	var want []string
	for n := range 23 {
		source := []string{"billing", "shop", "Billing"}[n%3]
		req := request(fmt.Sprintf("evt_%02d", n))
		req.Source = source
		c, err := f.Claim(ctx, req)
		ok(t, err)
		ok(t, f.Fail(ctx, c, hookonce.Failure{Dead: n%2 == 0}))
		want = append(want, c.String())
		if n%5 == 0 { // many were changed at the same time
			f.clock.Advance(time.Microsecond)
		}
	}
	var got []string
	q := hookonce.ClaimQuery{Limit: 4}
	for {
		page, err := i.ListClaims(ctx, q)
		ok(t, err)
		if len(page) == 0 {
			break
		}
		got = append(got, refs(page)...)
		q.After = &page[len(page)-1]
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("the pages have %v, want %v", got, want)
	}
}

func inspectClaimCounts[Tx any](t *testing.T, f *txFixture[Tx]) {
	ctx, i := t.Context(), f.inspector(t)
	f.mixed(t)
	counts, err := i.CountClaims(ctx, 100)
	ok(t, err)
	var got []string
	for _, c := range counts {
		got = append(got, fmt.Sprint(c.Source, " ", c.State, " ", c.N, " ", c.Lapsed, " ", f.clock.Now().Sub(c.Oldest) > 5*lease))
	}
	if want := []string{"billing dead 1 0 false", "billing failed 1 0 false", "billing processing 2 1 true", "shop failed 1 0 false"}; !slices.Equal(got, want) {
		t.Errorf("the counts are %q, want %q", got, want)
	}
	f.clock.Advance(2 * lease) // what was changed last has lapsed as well, and others were changed before it
	for _, limit := range []int{1, 2, 3} {
		counts, err = i.CountClaims(ctx, limit)
		ok(t, err)
		n, lapsed := 0, 0
		for _, c := range counts {
			n, lapsed = n+c.N, lapsed+c.Lapsed
		}
		if lapsed < 1 || lapsed > 2 || n < limit || n > 2*limit {
			t.Errorf("of %d at most, %d that lapsed were counted, and %d in all: %+v", limit, lapsed, n, counts)
		}
	}
}

func inspectEffects[Tx any](t *testing.T, f *txFixture[Tx]) {
	ctx, i := t.Context(), f.inspector(t)
	box := f.TxStore.(hookonce.Outbox[Tx])
	later := asks("evt_2", "")
	later.Due = f.clock.Now().Add(time.Hour)
	f.enqueue(t, asks("evt_1", ""), asks("evt_1", "second"), later)
	other := asks("evt_1", "crm")
	other.Name = "crm.update"
	f.enqueue(t, other)
	f.clock.Advance(time.Second)
	take := func(name string) hookonce.QueuedEffect {
		t.Helper()
		taken, err := box.TakeEffects(ctx, hookonce.TakeRequest{Names: []string{name}, Limit: 1, Lease: time.Minute})
		ok(t, err)
		if len(taken) != 1 {
			t.Fatalf("%d taken", len(taken))
		}
		return taken[0]
	}
	ok(t, box.FailEffect(ctx, take("crm.update"), hookonce.Failure{Err: errors.New("unknown customer"), Dead: true}, time.Time{}))
	ok(t, box.CompleteEffect(ctx, take(receipt)))
	under := take(receipt)
	list := func(q hookonce.EffectQuery) (all []string) {
		t.Helper()
		q.Limit = 10
		found, err := i.ListEffects(ctx, q)
		ok(t, err)
		for _, e := range found {
			if len(e.Payload) > 0 {
				t.Errorf("the list has a payload")
			}
			all = append(all, fmt.Sprintf("%s %s/%s %s", e.Name, e.Key, e.Step, e.State))
		}
		return all
	}
	for name, c := range map[string]struct {
		q    hookonce.EffectQuery
		want []string
	}{
		"open":         {hookonce.EffectQuery{}, []string{"mail.receipt evt_1/second processing", "mail.receipt evt_2/mail.receipt pending"}},
		"of a name":    {hookonce.EffectQuery{Name: "crm.update"}, nil},
		"dead":         {hookonce.EffectQuery{Dead: true}, []string{"crm.update evt_1/crm dead"}},
		"dead, a name": {hookonce.EffectQuery{Dead: true, Name: receipt}, nil},
		"of a claim":   {hookonce.EffectQuery{Ref: request("evt_1").Ref}, []string{"mail.receipt evt_1/mail.receipt done", "mail.receipt evt_1/second processing", "crm.update evt_1/crm dead"}},
		"one":          {hookonce.EffectQuery{ID: under.ID}, []string{"mail.receipt evt_1/second processing"}},
		"a next page":  {hookonce.EffectQuery{After: &under}, []string{"mail.receipt evt_2/mail.receipt pending"}},
	} {
		if got := list(c.q); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	counts, err := i.CountEffects(ctx, 10)
	ok(t, err)
	var got []string
	for _, c := range counts {
		got = append(got, fmt.Sprint(c.Name, " ", c.Open, " ", c.Late, " ", c.Dead, " ", c.Due.IsZero()))
	}
	if want := []string{"crm.update 0 0 1 true", "mail.receipt 2 0 0 false"}; !slices.Equal(got, want) {
		t.Errorf("the counts are %q, want %q", got, want)
	}
	f.clock.Advance(2 * time.Hour)
	if counts, err := i.CountEffects(ctx, 1); err != nil || len(counts) != 2 || counts[1].Open != 1 {
		t.Errorf("of one at most: %+v, %v", counts, err)
	}
	if counts, err := i.CountEffects(ctx, 10); err != nil || counts[1].Late != 2 { // one waits, and the lease of the other is over
		t.Errorf("late: %+v, %v", counts, err)
	}
}

func inspectGuards[Tx any](t *testing.T, f *txFixture[Tx]) {
	ctx, i := t.Context(), f.inspector(t)
	for _, name := range []string{"pi_3", "pi_1", "pi_2"} {
		f.newer(t, name, 7, true)
	}
	at := f.clock.Now()
	found, err := i.ListGuards(ctx, hookonce.GuardVersions, "", 2)
	if err != nil || len(found) != 2 || found[0].Name != "pi_1" || found[0].Rank != hookonce.Version(7) || !found[0].UpdatedAt.Equal(at) {
		t.Errorf("versions: %+v, %v", found, err)
	}
	if found, err := i.ListGuards(ctx, hookonce.GuardVersions, "pi_2", 2); err != nil || len(found) != 1 || found[0].Name != "pi_3" {
		t.Errorf("after pi_2: %+v, %v", found, err)
	}
	tx, err := f.db.Begin(ctx)
	ok(t, err)
	_, _, err = f.TxStore.(hookonce.Guards[Tx]).Transition(ctx, tx, "order 7", "", "paid")
	ok(t, errors.Join(err, f.db.Commit(ctx, tx)))
	if found, err := i.ListGuards(ctx, hookonce.GuardStates, "", 10); err != nil || len(found) != 1 || found[0].Name != "order 7" || found[0].State != "paid" {
		t.Errorf("states: %+v, %v", found, err)
	}
	if found, err := i.ListGuards(ctx, "others", "", 10); err != nil || len(found) != 0 {
		t.Errorf("of a kind that there is not: %+v, %v", found, err)
	}
}
