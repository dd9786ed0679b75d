package claimsql

import (
	_ "embed"
	"fmt"
	"strings"
	"text/template"
)

// Statements are the texts for PostgreSQL. Their parameters are $1 and so on; postgres.sql says what they are.
type Statements struct {
	// Claims. Fresh claims a key that was never seen, and Claim one in whatever state. FreshOrFail and ClaimOrFail are the
	// same for batches, which end where a statement fails. Find is Lookup for who decides anew where there is none.
	FreshOrFail, ClaimOrFail                                          string
	Fresh, Claim, Trace, Extend, Complete, Fail, Forget, Lookup, Find string
	// Responses.
	CompleteWith, Keep, Response string
	// Guards.
	Newer, Transition, StateOf string
	// The outbox. Effects are lists, by state.
	Enqueue, Take, ChangeEffect, Redrive string
	Effects                              map[string]string
	// Purges, by what goes: done, failed (claims), effects, versions, states.
	Purge map[string]Purge
}

// Purge is how rows of one table are purged. The parameters of Count and Delete are the source, if rows have one,
// the span, and the limit; both return a number of rows.
type Purge struct {
	Next          string // the first source after the one that is the parameter; empty: rows have none
	Count, Delete string
}

//go:embed postgres.sql
var postgresSQL string

var postgresTexts = template.Must(template.New("postgres.sql").Funcs(Functions).Parse(postgresSQL))

// Postgres returns the statements for tables with the prefix. Ends of work under a lease are told on the channel;
// empty: they are not told.
func Postgres(prefix, channel string) Statements {
	text := func(name string) string { return expand(name, names{prefix: prefix, Channel: channel}) }
	s := Statements{
		FreshOrFail: text("freshOrFail"), ClaimOrFail: text("claimOrFail"),
		Fresh: text("fresh"), Claim: text("claim"), Trace: text("trace"), Complete: text("change"), Extend: expand("change", names{prefix: prefix}), // which ends nothing
		Fail: text("fail"), Forget: text("forget"), Lookup: text("lookup"), Find: text("find"),
		CompleteWith: text("completeWith"), Keep: text("keep"), Response: text("response"),
		Newer: text("newer"), Transition: text("transition"), StateOf: text("stateOf"),
		Enqueue: text("enqueue"), Take: text("take"), ChangeEffect: text("changeEffect"), Redrive: text("redrive"),
		Effects: map[string]string{},
		Purge: map[string]Purge{
			"done":     purge(names{prefix: prefix, Table: "claims", Condition: "state = 'done'"}),
			"failed":   purge(names{prefix: prefix, Table: "claims", Condition: "state IN ('failed', 'dead')"}),
			"effects":  purge(names{prefix: prefix, Table: "effects", Condition: "state = 'done'"}),
			"versions": purge(names{prefix: prefix, Table: "versions"}),
			"states":   purge(names{prefix: prefix, Table: "states"}),
		},
	}
	// The state stands in the text, so that the server can tell which index knows all such effects: done ones, which
	// are nearly all, are in none but that of the numbers.
	for state, condition := range map[string]string{
		"pending":    "state = 'pending' AND due_at IS NOT NULL",
		"processing": "state = 'processing' AND due_at IS NOT NULL",
		"failed":     "state = 'failed' AND due_at IS NOT NULL",
		"dead":       "state = 'dead'",
		"done":       "state = 'done'",
	} {
		s.Effects[state] = expand("effects", names{prefix: prefix, Condition: condition})
	}
	return s
}

func purge(n names) Purge {
	p := Purge{Count: expand("purgeCount", n), Delete: expand("purgeDelete", n)}
	if n.Condition != "" {
		p.Next = expand("purgeNext", n)
	}
	return p
}

// names are what a text is expanded with: {{.}} is the prefix of the tables.
type names struct {
	prefix  string
	Channel string // where ends of work are told
	// Table and Condition say what a list or a purge is about.
	Table, Condition string
}

// String makes {{.}} the prefix.
func (n names) String() string { return n.prefix }

// KeyLock is [KeyLock] for these tables.
func (n names) KeyLock(source, key string) string { return KeyLock(n.prefix, source, key) }

// NotFresh and NotWon are what FreshOrFail and ClaimOrFail fail with: they end the batch. People find them in the
// server's log.
const (
	NotFresh = "hookonce: the event is not new, and nothing of this batch is done"
	NotWon   = "hookonce: the key was taken, and nothing of this batch is done"
)

// NotFresh is [NotFresh], for the texts.
func (n names) NotFresh() string { return NotFresh }

// NotWon is [NotWon], for the texts.
func (n names) NotWon() string { return NotWon }

// expand returns the text with that name.
func expand(name string, n names) string {
	var b strings.Builder
	if err := postgresTexts.ExecuteTemplate(&b, name, n); err != nil {
		panic(fmt.Sprintf("claimsql: %v", err)) // the texts are part of the program, and a test expands each
	}
	return strings.TrimSpace(b.String())
}

// Number gives the transaction of an event without a key its number.
const Number = `SELECT txid_current()`

// Intact looks whether the transaction with the number $1 is still under way, in one round trip with COMMIT: the
// handler may have ended it, and begun another one. What it did after a commit of its own is committed as well,
// because nothing would do it again; the answer is false then. After a rollback the cast fails, and with it the
// COMMIT.
const Intact = `
SELECT (CASE WHEN txid_current_if_assigned() = $1 THEN 'true' WHEN txid_status($1) = 'committed' THEN 'false'
ELSE coalesce(txid_status($1), 'forgotten') END)::boolean`

// Status asks what became of the transaction with the number $1: committed, aborted, or something else.
// https://www.postgresql.org/docs/current/functions-info.html#FUNCTIONS-PG-SNAPSHOT
const Status = `SELECT coalesce(txid_status($1), 'forgotten')`

// Committed reports whether a transaction of that status was committed. It is an error if that is not known, or still to come.
func Committed(status string) (committed bool, err error) {
	committed = status == "committed"
	if !committed && status != "aborted" {
		err = fmt.Errorf("the server says that it is %s", status)
	}
	return committed, err
}
