//go:build linux

package main

import "time"

// row is one line of the table.
type row struct {
	id    string
	title string
	kind  string // of the child process, see servers and baselines
	store string // sqlite, postgres or none
	load  loadKind
	half  bool // measure latency at half load, too
	ours  bool // hookonce's own process: its memory and start-up are of interest
	limit bool // it verifies and stores what the baseline stores, so L bounds it

	hanging int           // of the destinations, for manyDestinations
	rate    int           // requests per second; 0: as many as are answered
	aged    int           // events of a month ago that are in the database, for each round
	keep    time.Duration // of ids and bodies, as in serverOrder
	large   bool          // runs in the middle of the server's checkpoints; needs -size
	keys    bool          // as many keys as -size says are in the database
}

// loadKind is what the generator does to a row.
type loadKind int

const (
	freshEvents      loadKind = iota // every request is a new event
	storm1000                        // the same 1000 events again and again
	endToEnd                         // new events, counted when they reach the sink
	noRequests                       // the row makes its own work
	manyDestinations                 // new events for a hundred destinations, counted at those that answer
)

var rows = []row{
	{id: "a", title: "ceiling C: verify, answer", kind: "ceiling", store: "none", load: freshEvents, half: true},
	{id: "b1", title: "baseline B, SQLite: rows in batches, no HTTP", kind: "baseline-sqlite", store: "sqlite", load: noRequests},
	{id: "b2", title: "baseline B, Postgres: rows in batches, no HTTP", kind: "baseline-postgres", store: "postgres", load: noRequests},
	{id: "c", title: "hand-written, pgx: BEGIN, INSERT, COMMIT", kind: "hand-postgres", store: "postgres", load: freshEvents, limit: true},
	{id: "d", title: "hand-written, SQLite: BEGIN, INSERT, COMMIT", kind: "hand-sqlite", store: "sqlite", load: freshEvents, limit: true},
	{id: "e", title: "**hookonce, SQLite**", kind: "gateway", store: "sqlite", load: freshEvents, half: true, ours: true, limit: true},
	{id: "f", title: "**hookonce, Postgres**", kind: "gateway", store: "postgres", load: freshEvents, half: true, ours: true, limit: true},
	{id: "g1", title: "**hookonce, SQLite**: duplicate storm", kind: "gateway", store: "sqlite", load: storm1000},
	{id: "g2", title: "**hookonce, Postgres**: duplicate storm", kind: "gateway", store: "postgres", load: storm1000},
	{id: "h1", title: "**hookonce, SQLite**: delivered end to end", kind: "gateway", store: "sqlite", load: endToEnd, ours: true},
	{id: "h2", title: "**hookonce, Postgres**: delivered end to end", kind: "gateway", store: "postgres", load: endToEnd, ours: true},
	{id: "i1", title: "hand-written pgx transaction with an effect", kind: "hand-effect", store: "postgres", load: freshEvents},
	{id: "i2", title: "**hookonce library**, pgx, same effect", kind: "library", store: "postgres", load: freshEvents},
	{id: "i3", title: "hand-written idempotent endpoint, pgx: row lock, effect, stored answer", kind: "hand-idempotent", store: "postgres", load: freshEvents},
	{id: "i4", title: "**hookonce library**, `Idempotent`, pgx, same effect and answer", kind: "library-idempotent", store: "postgres", load: freshEvents},
	{id: "i5", title: "hand-written, pgx: its own HMAC, claim and effect in one statement", kind: "hand-statement", store: "postgres", load: freshEvents},
	{id: "i6", title: "**hookonce library**, pgx, same effect, as a batch", kind: "library-batch", store: "postgres", load: freshEvents},
	{id: "j1", title: "**hookonce, Postgres**: 100 destinations, delivered to 95", kind: "gateway", store: "postgres", load: manyDestinations},
	{id: "j2", title: "**hookonce, Postgres**: the same, and the other 5 hang", kind: "gateway", store: "postgres", load: manyDestinations, hanging: idle},
	{id: "k1", title: "**hookonce, Postgres**: 2000 per second, nothing is purged", kind: "gateway", store: "postgres", load: freshEvents, rate: 2000, aged: 20_000, keep: -1},
	{id: "k2", title: "**hookonce, Postgres**: 2000 per second during purges and drops of partitions", kind: "gateway", store: "postgres", load: freshEvents, rate: 2000, aged: 20_000, keep: 24 * time.Hour},
	{id: "l1", title: "**hookonce, Postgres**: accepted into empty tables", kind: "gateway", store: "postgres", load: freshEvents, half: true, large: true},
	{id: "l2", title: "**hookonce, Postgres**: accepted beside -size keys", kind: "gateway", store: "postgres", load: freshEvents, half: true, large: true, keys: true},
	{id: "m1", title: "**hookonce, SQLite**: accepted into an empty file", kind: "gateway", store: "sqlite", load: freshEvents, half: true, large: true},
	{id: "m2", title: "**hookonce, SQLite**: accepted beside -size keys", kind: "gateway", store: "sqlite", load: freshEvents, half: true, large: true, keys: true},
}
