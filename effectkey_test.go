package hookonce_test

import (
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
)

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
