// Package claimsql has what the stores of claims in SQL databases share: what decides about a claim, in one form for
// every statement that does; the statements for PostgreSQL; how often a statement that lost a race is tried again;
// and what to say of a handler that ended its transaction, or of a pool that waits for itself.
//
// Texts are templates of text/template. {{.}} stands before the names of tables, and [Functions] are what decides:
// the statements of the stores and the SQL functions of the migrations are made of the same.
package claimsql

import (
	"fmt"
	"strings"
	"text/template"
)

// Columns are those of a claim, in the order in which stores read them.
const Columns = `state, token, lease_until, event_type, digest, first_seen, updated_at, last_error, pinned`

// EffectColumns are those of an effect, in the order in which stores read them. MySQL wants quotes around key.
const EffectColumns = `id, source, coalesce(key, ''), step, name, payload, state, token, tries, deaths, due_at, enqueued_at, last_error`

// Functions are what templates have besides the names of tables. A row is given by its alias; empty: the columns
// stand alone. Other arguments are expressions.
var Functions = template.FuncMap{
	"claimable":  claimable,
	"open":       open,
	"repeatable": repeatable,
	"taken":      taken,
	"pinned":     pinned,
	"supersedes": supersedes,
	"overwrites": overwrites,
	"columns":    func(row string) string { return of(row, Columns) },
	"effect":     func() string { return EffectColumns },
	"begun":      func() string { return begun },
}

// of puts the alias of a row in front of each of the columns.
func of(row, columns string) string {
	if row == "" {
		return columns
	}
	return row + "." + strings.ReplaceAll(columns, ", ", ", "+row+".")
}

// claimable is whether the row may be taken over at that time, but for the content that it is pinned to, which is
// open. It is [hookonce.Claim.VerdictFor] in SQL.
//
// [hookonce.Claim.VerdictFor]: https://pkg.go.dev/github.com/hookonce/hookonce#Claim.VerdictFor
func claimable(row, at string) string {
	return fmt.Sprintf("(%s IN ('failed', 'dead') OR (%s = 'processing' AND %s <= %s))", of(row, "state"), of(row, "state"), of(row, "lease_until"), at)
}

// open is whether the row is pinned to no other content than that with the digest. A digest that is not known
// differs from none.
func open(row, digest string) string {
	return fmt.Sprintf("(%s = 0 OR coalesce(%s = %s, true))", of(row, "pinned"), of(row, "digest"), digest)
}

// repeatable is whether the trace of a failed attempt, with the state next, may replace the one that an attempt with the
// same token left: those that began afresh at the same time have the same token. One that gave up is never made
// an ordinary failure again, because its sender was told to stop.
func repeatable(row, next string) string {
	return fmt.Sprintf("(%s = 'failed' OR (%s = 'dead' AND %s = 'dead'))", of(row, "state"), of(row, "state"), next)
}

// overwrites is whether the trace of a failed attempt, in the row next, replaces the row: unless the work is done,
// owned by somebody else, or a newer attempt's. Content that the claim is pinned to stays. Made is the time of the
// attempt's own claim if that is done only because of a commit that was not the store's, else null.
func overwrites(row, next, made string) string {
	return fmt.Sprintf(`%s AND ((%s < %s AND %s)
	OR (%s = %s AND (%s
		OR (%s = 'done' AND %s = %s AND %s = %s))))`,
		open(row, of(next, "digest")), of(row, "token"), of(next, "token"), claimable(row, of(next, "updated_at")),
		of(row, "token"), of(next, "token"), repeatable(row, of(next, "state")),
		of(row, "state"), of(row, "first_seen"), of(next, "first_seen"), of(row, "updated_at"), made)
}

// taken is what becomes of a row that is taken over, as assignments. It keeps what a later copy does not say. Pin is
// whether the attempt pins the claim to its content.
func taken(row, state, lease, at, eventType, digest, pin string) string {
	return fmt.Sprintf(`state = %s, token = %s + 1, lease_until = %s, updated_at = %s,
	event_type = coalesce(nullif(%s, ''), %s), digest = coalesce(%s, %s),
	pinned = CASE WHEN %s AND %s = 0 THEN %s + 1 ELSE %s END`,
		state, of(row, "token"), lease, at, eventType, of(row, "event_type"), digest, of(row, "digest"),
		pin, of(row, "pinned"), of(row, "token"), of(row, "pinned"))
}

// pinned is what a failure leaves pinned: it takes back what its own attempt pinned, and nothing else.
func pinned(row, pin string) string {
	return fmt.Sprintf("CASE WHEN %s NOT IN (0, %s) THEN %s WHEN %s THEN %s ELSE 0 END",
		of(row, "pinned"), of(row, "token"), of(row, "pinned"), pin, of(row, "token"))
}

// supersedes is whether the rank in the row next supersedes the recorded one: see [hookonce.Rank.Supersedes].
//
// [hookonce.Rank.Supersedes]: https://pkg.go.dev/github.com/hookonce/hookonce#Rank.Supersedes
func supersedes(row, next string) string {
	return fmt.Sprintf("%s <> %s OR %s < %s OR %s = %s AND %s = 'time'", of(row, "kind"), of(next, "kind"),
		of(row, "version"), of(next, "version"), of(row, "version"), of(next, "version"), of(next, "kind"))
}

// begun is what taking does to an effect. MySQL works from left to right with what it has set, so the old state
// is read first.
const begun = `deaths = deaths + CASE WHEN state = 'processing' THEN 1 ELSE 0 END,
	tries = tries + CASE WHEN state = 'processing' THEN 0 ELSE 1 END,
	state = 'processing', token = token + 1`

// KeyLock returns an SQL expression for the number of the PostgreSQL advisory lock that belongs to a
// claim's key. Whoever keeps an inserted or changed claim in a transaction for longer than one
// statement takes this lock first, in the same transaction and in exclusive mode, so that others can
// tell without waiting. Prefix stands before the names of tables; source and key are expressions of
// type text.
//
// Keys that share a number by chance wait for each other and are otherwise unaffected: who owns a key
// is decided by the unique index alone.
func KeyLock(prefix, source, key string) string {
	return fmt.Sprintf("hashtextextended(%s, hashtextextended(%s, hashtextextended('%sclaims', 0)))", key, source, prefix)
}
