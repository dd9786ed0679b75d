package sqlapi

import (
	"bytes"
	"crypto/sha256"
	"strings"
	"testing"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/claimsql"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
	"pgregory.net/rapid"
)

// oddKeys are keys at the borders of what is stored as it is.
func oddKeys() []string {
	lock := "\U0001F512"
	keys := []string{
		"", "evt_1", " ", "sha256:", "sha256:abc", "SHA256:abc", "xsha256:", "ä", "a\u0308", lock, "ß", "\u200b", "\ufeff",
		"\x01", "a\tb", "a\nb", "\x1f", "\x7f", "\u0080", "\u009f", "\u00a0", "~", "'", `\`, `\u0001`, "%s", "NULL", "\U0010FFFF",
		hookonce.NormalKey("a\nb"),
	}
	for _, n := range []int{hookonce.MaxKeyLen - 1, hookonce.MaxKeyLen, hookonce.MaxKeyLen + 1, 10_000} {
		keys = append(keys, strings.Repeat("k", n), strings.Repeat(lock, n/4), strings.Repeat("ä", n/2), strings.Repeat("ä", n/2)+"k")
	}
	return keys
}

// both compares what Go and a function make of the same texts.
func both(t *testing.T, query string, inputs []string, want func(string) string) {
	t.Helper()
	pool := connect(t, pgtest.DSN(t))
	migrate(t, pool, "hookonce")
	ctx := t.Context()
	agree := func(t interface {
		Helper()
		Fatalf(string, ...any)
	}, input string) {
		t.Helper()
		var got string
		if err := pool.QueryRow(ctx, query, input).Scan(&got); err != nil || got != want(input) {
			t.Fatalf("%s of %q = %q, %v; want %q", query, input, got, err, want(input))
		}
	}
	for _, input := range inputs {
		agree(t, input)
	}
	text := rapid.Custom(func(t *rapid.T) string {
		parts := rapid.SliceOfN(rapid.SampledFrom(oddKeys()), 0, 3).Draw(t, "parts")
		return strings.Join(parts, "") + strings.ReplaceAll(rapid.String().Draw(t, "rest"), "\x00", "")
	})
	rapid.Check(t, func(rt *rapid.T) { // several each time: they cost little, unlike the histories that -rapid.checks is about here
		for _, input := range rapid.SliceOfN(text, 4, 4).Draw(rt, "inputs") {
			agree(rt, input)
		}
	})
}

// The row that a function makes is the one that the library makes.
func TestKeysAreNormalisedAlike(t *testing.T) {
	both(t, "SELECT hookonce.normal_key($1)", oddKeys(), hookonce.NormalKey)
}

func TestKeysAreJoinedAlike(t *testing.T) {
	both(t, "SELECT hookonce.join_key('tenant', $1, 'ä')", oddKeys(), func(s string) string { return hookonce.JoinKey("tenant", s, "ä") })
	both(t, "SELECT hookonce.join_key($1)", oddKeys(), func(s string) string { return hookonce.JoinKey(s) })
}

func TestEffectKeysAreAlike(t *testing.T) {
	both(t, "SELECT hookonce.effect_key('shop', $1, 'charge')", oddKeys(), func(s string) string {
		return hookonce.EffectKey(hookonce.Ref{Source: "shop", Key: hookonce.NormalKey(s)}, "charge")
	})
}

// Who works on a key holds the same lock in both.
func TestLocksAreAlike(t *testing.T) {
	d := newCaller(t)
	for _, key := range oddKeys() {
		theirs, err := ask[int64](d, d, "SELECT "+claimsql.KeyLock(`"hookonce".`, "$1::text", "$2::text"), "shop", key)
		if err != nil {
			t.Fatal(err)
		}
		is(d, d, theirs, "SELECT hookonce.key_lock('shop', $1)", key)
	}
}

// A part that is null makes no key, like one that is empty.
func TestNothingMakesNoKey(t *testing.T) {
	pool := connect(t, pgtest.DSN(t))
	migrate(t, pool, "hookonce")
	for _, query := range []string{
		"hookonce.normal_key(NULL)", "hookonce.join_key(NULL, 'a')", "hookonce.join_key('a', NULL, 'b')",
		"hookonce.join_key(VARIADIC ARRAY[NULL]::text[])", "hookonce.join_key(VARIADIC '{}')",
		"hookonce.effect_key(NULL, 'a', 'b')", "hookonce.effect_key('a', NULL, 'b')", "hookonce.effect_key('a', 'b', NULL)",
	} {
		var got *string
		if err := pool.QueryRow(t.Context(), "SELECT "+query).Scan(&got); err != nil || got == nil || *got != "" {
			t.Errorf("%s = %v, %v; want an empty text", query, got, err)
		}
	}
}

// Bodies have the digest that the library gives them, as bytes and as text.
func TestDigestsAreAlike(t *testing.T) {
	pool := connect(t, pgtest.DSN(t))
	migrate(t, pool, "hookonce")
	for _, body := range []string{"", "{}", `{"id": "evt_1", "name": "J\u00f6rg\\n"}`, strings.Repeat("ä", 100_000)} {
		sum := sha256.Sum256([]byte(body))
		var fromBytes, fromText []byte
		err := pool.QueryRow(t.Context(), "SELECT hookonce.digest($1::bytea), hookonce.digest($2::text)", []byte(body), body).Scan(&fromBytes, &fromText)
		if err != nil || !bytes.Equal(fromBytes, sum[:16]) || !bytes.Equal(fromText, sum[:16]) {
			t.Errorf("digests of %.40q are %x and %x, %v; want %x", body, fromBytes, fromText, err, sum[:16])
		}
	}
}
