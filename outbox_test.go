package hookonce_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
)

func TestEffectValidate(t *testing.T) {
	ref := hookonce.Ref{Source: "billing", Key: "evt_1"}
	long := strings.Repeat("n", hookonce.MaxKeyLen)
	for name, c := range map[string]struct {
		effect hookonce.Effect
		valid  bool
	}{
		"least":               {hookonce.Effect{Ref: ref, Name: "mail"}, true},
		"without a key":       {hookonce.Effect{Ref: hookonce.Ref{Source: "billing"}, Name: "mail"}, true},
		"most":                {hookonce.Effect{Ref: ref, Name: long, Step: long, Payload: make([]byte, hookonce.MaxPayload)}, true},
		"due long ago":        {hookonce.Effect{Ref: ref, Name: "mail", Due: time.Date(1, 1, 1, 0, 0, 1, 0, time.UTC)}, true},
		"due in ages":         {hookonce.Effect{Ref: ref, Name: "mail", Due: time.Date(9999, 12, 31, 23, 0, 0, 0, time.UTC)}, true},
		"no source":           {hookonce.Effect{Ref: hookonce.Ref{Key: "evt_1"}, Name: "mail"}, false},
		"bad key":             {hookonce.Effect{Ref: hookonce.Ref{Source: "billing", Key: "a\nb"}, Name: "mail"}, false},
		"no name":             {hookonce.Effect{Ref: ref}, false},
		"long name":           {hookonce.Effect{Ref: ref, Name: long + "n"}, false},
		"NUL in the name":     {hookonce.Effect{Ref: ref, Name: "a\x00b"}, false},
		"long step":           {hookonce.Effect{Ref: ref, Name: "mail", Step: long + "n"}, false},
		"step not UTF-8":      {hookonce.Effect{Ref: ref, Name: "mail", Step: "\xff"}, false},
		"large payload":       {hookonce.Effect{Ref: ref, Name: "mail", Payload: make([]byte, hookonce.MaxPayload+1)}, false},
		"due before year 1":   {hookonce.Effect{Ref: ref, Name: "mail", Due: time.Date(0, 12, 31, 0, 0, 0, 0, time.UTC)}, false},
		"due after year 9999": {hookonce.Effect{Ref: ref, Name: "mail", Due: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)}, false},
	} {
		if err := c.effect.Validate(); (err == nil) != c.valid || err != nil && !errors.Is(err, hookonce.ErrInvalidRef) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestGuardNames(t *testing.T) {
	long := strings.Repeat("n", hookonce.MaxKeyLen)
	for name, valid := range map[string]bool{"order/1": true, long: true, "": false, long + "n": false, "a\x00b": false, "\xff": false} {
		if err := hookonce.ValidateResource(name, hookonce.Version(1)); (err == nil) != valid || err != nil && !errors.Is(err, hookonce.ErrInvalidRef) {
			t.Errorf("resource %.20q: %v", name, err)
		}
		if err := hookonce.ValidateTransition(name, "", "paid"); (err == nil) != valid {
			t.Errorf("entity %.20q: %v", name, err)
		}
	}
	for move, valid := range map[[2]string]bool{
		{"", "paid"}: true, {"paid", "open"}: true, {long, "open"}: true, {"open", long}: true,
		{"paid", "paid"}: false, {"paid", ""}: false, {"", ""}: false, {long + "n", "open"}: false, {"open", long + "n"}: false,
		{"a\nb", "open"}: false, {"open", "a\nb"}: false,
	} {
		if err := hookonce.ValidateTransition("order/1", move[0], move[1]); (err == nil) != valid || err != nil && !errors.Is(err, hookonce.ErrInvalidRef) {
			t.Errorf("from %.20q to %.20q: %v", move[0], move[1], err)
		}
	}
}

// These keys are in the hands of others: changing one repeats effects after an update.
func TestEffectKeysNeverChange(t *testing.T) {
	ref := hookonce.Ref{Source: "billing", Key: "evt_1"}
	if got := hookonce.EffectKey(ref, "fee"); got != "e7f171d918a83564796438479cf7d00b" {
		t.Errorf("EffectKey = %s", got)
	}
	queued := hookonce.QueuedEffect{Effect: hookonce.Effect{Ref: ref, Name: "mail", Step: "fee"}, ID: 7, EnqueuedAt: time.Unix(1769904000, 0)}
	if got := queued.IdempotencyKey(); got != "e7f171d918a83564796438479cf7d00b" {
		t.Errorf("the key of an effect = %s", got)
	}
	queued.Key, queued.Step = "", ""
	if got := queued.IdempotencyKey(); got != "906c2b6d474495a4cb3885823b4f913c" {
		t.Errorf("the key of an effect that nothing with a key asked for = %s", got)
	}
}

func TestWhatHasNoNameHasNoKey(t *testing.T) {
	for _, c := range [][3]string{{"", "k", "s"}, {"s", "", "s"}, {"s", "k", ""}} {
		if got := hookonce.EffectKey(hookonce.Ref{Source: c[0], Key: c[1]}, c[2]); got != "" {
			t.Errorf("EffectKey(%q) = %s", c, got)
		}
	}
}

// Effects without a key of their own are told apart, also from those of another outbox.
func TestUnkeyedEffectsHaveKeysOfTheirOwn(t *testing.T) {
	at := time.Unix(1769904000, 0)
	seen := map[string]bool{}
	for _, e := range []hookonce.QueuedEffect{
		{ID: 1, EnqueuedAt: at},
		{ID: 2, EnqueuedAt: at},
		{ID: 1, EnqueuedAt: at.Add(time.Microsecond)},
	} {
		e.Source, e.Name = "billing", "mail"
		seen[e.IdempotencyKey()] = true
		later := e
		later.Token, later.Tries, later.EnqueuedAt = 3, 2, e.EnqueuedAt.UTC()
		if later.IdempotencyKey() != e.IdempotencyKey() {
			t.Errorf("effect %d has another key at another attempt", e.ID)
		}
	}
	if len(seen) != 3 || seen[""] {
		t.Errorf("keys: %v", seen)
	}
}

// FuzzEffectKey: equal keys mean equal names, and any key can be sent.
func FuzzEffectKey(f *testing.F) {
	f.Add("billing", "evt_1", "fee", "billing", "evt_1", "fee2")
	f.Add("ab", "c", "d", "a", "bc", "d")
	f.Add("a", "1:b", "c", "a", "1", ":bc")
	f.Add("é\x00", "k", "s", "é", "\x00k", "s")
	f.Fuzz(func(t *testing.T, source1, key1, step1, source2, key2, step2 string) {
		a := hookonce.EffectKey(hookonce.Ref{Source: source1, Key: key1}, step1)
		b := hookonce.EffectKey(hookonce.Ref{Source: source2, Key: key2}, step2)
		same := source1 == source2 && key1 == key2 && step1 == step2
		if a != "" && same != (a == b) {
			t.Fatalf("%q and %q", a, b)
		}
		if (a == "") != (source1 == "" || key1 == "" || step1 == "") {
			t.Fatalf("%q for %q %q %q", a, source1, key1, step1)
		}
		if a != "" && (len(a) != 32 || strings.Trim(a, "0123456789abcdef") != "") {
			t.Fatalf("%q cannot be sent", a)
		}
	})
}
