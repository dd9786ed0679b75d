package tally

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// What is counted: one of [Words].
type What string

// What happened to the requests and events of a source.
const (
	Received    What = "received"
	Verified    What = "verified"
	Active      What = "active"
	Accepted    What = "accepted"
	Copies      What = "copies"
	Conflicts   What = "conflicts"
	Unkeyed     What = "unkeyed"
	Unprotected What = "unprotected"
	Unrouted    What = "unrouted"
	Reseen      What = "reseen"
	Stored      What = "stored"
	StoredBytes What = "stored_bytes"
	Missing     What = "missing"
	Recovered   What = "recovered"
)

// What happened to the deliveries of a source's events to a destination.
const (
	Attempts            What = "attempts"
	Done                What = "done"
	Failed              What = "failed"
	Spared              What = "spared"
	Dead                What = "dead"
	First               What = "first"
	FirstFailed         What = "first_failed"
	FirstRedriven       What = "first_redriven"
	FirstRedrivenFailed What = "first_redriven_failed"
	FirstReplayed       What = "first_replayed"
	FirstReplayedFailed What = "first_replayed_failed"

	FirstReconciled       What = "first_reconciled"
	FirstReconciledFailed What = "first_reconciled_failed"
)

// What a family of words begins with.
const (
	rejected = "rejected:"
	age      = "age:"
	took     = "took:"
	purged   = "purged:"
	secret   = "secret:"
)

// MaxSecrets is how many secrets of a source are told apart: later ones count for the last.
const MaxSecrets = 4

// Secret counts authentic requests by the number, from 1, of the source's secret that verified them.
func Secret(n int) What { return secret + What(strconv.Itoa(min(n, MaxSecrets))) }

// Rejected counts requests that were not acknowledged, by reason.
func Rejected(reason string) What { return rejected + What(reason) }

// Purged counts rows that were deleted because they were past their retention, by the kind that the journal gives them.
func Purged(kind string) What { return purged + What(kind) }

// Scope says what a count belongs to.
type Scope string

// The scopes.
const (
	OfSource   Scope = "source"                 // Source is set; empty for requests to no source that is configured
	OfDelivery Scope = "source and destination" // both are set
	OfStore    Scope = "store"                  // neither is
)

// Word says what a word means.
type Word struct {
	What    What
	Of      Scope
	Meaning string // a sentence
}

// words are all of them, in the order in which an event meets them.
var words = slices.Concat([]Word{
	{Received, OfSource, "Requests received."},
	{Verified, OfSource, "Requests that proved authentic and carried events."},
	{Active, OfSource, "Minutes in which any gateway had such a request: how often a source is heard of, however much it sends at once."},
	{Accepted, OfSource, "Events stored as new under a key."},
	{Unkeyed, OfSource, "Events stored without a key: their copies cannot be recognised."},
	{Unprotected, OfSource, "Events delivered past the store while it was away."},
	{Unrouted, OfSource, "Events stored as new that no route wanted: they are delivered nowhere."},
	{Copies, OfSource, "Copies of events that were stored before, with the same content."},
	{Conflicts, OfSource, "Copies of events that were stored before, with other content under the same key."},
	{Reseen, OfSource, "Events of which copies came: each counts once an hour and gateway, however many copies there are."},
	{Stored, OfSource, "Events stored."},
	{StoredBytes, OfSource, "Bytes of their headers and bodies."},
	{Missing, OfSource, "Events of the sender's list that never arrived."},
	{Recovered, OfSource, "Events of the sender's list that were stored from it, or asked for again, because they never arrived."},
}, secrets(), rejections(), bins(age, ages, OfSource, "Copies and conflicts that came"), []Word{
	{Attempts, OfDelivery, "Attempts that came to an end."},
	{Done, OfDelivery, "Attempts that the destination answered with success."},
	{Failed, OfDelivery, "Attempts that failed and are made again."},
	{Spared, OfDelivery, "Attempts that failed while the destination was ill, which does not count as a try."},
	{Dead, OfDelivery, "Attempts after which the delivery was given up."},
	{First, OfDelivery, "First attempts at events that came for the first time, spared ones left out."},
	{FirstFailed, OfDelivery, "Those of them that failed."},
	{FirstRedriven, OfDelivery, "First attempts after a copy made failed or dead work begin again."},
	{FirstRedrivenFailed, OfDelivery, "Those of them that failed."},
	{FirstReplayed, OfDelivery, "First attempts after an operator's replay."},
	{FirstReplayedFailed, OfDelivery, "Those of them that failed."},
	{FirstReconciled, OfDelivery, "First attempts at events that came from the provider's list, because no webhook had brought them."},
	{FirstReconciledFailed, OfDelivery, "Those of them that failed."},
}, bins(took, durations, OfDelivery, "Attempts that took"), []Word{
	{Purged("ids"), OfStore, "Events deleted with all that was left of them."},
	{Purged("bodies"), OfStore, "Bodies deleted."},
	{Purged("attempts"), OfStore, "Records of attempts deleted."},
	{Purged("answers"), OfStore, "Kept answers deleted."},
	{Purged("ranks"), OfStore, "Newest ranks of resources deleted."},
	{Purged("audits"), OfStore, "Audit records deleted."},
})

// secrets are the words for authentic requests by secret.
func secrets() (all []Word) {
	for n := 1; n <= MaxSecrets; n++ {
		meaning := "Authentic requests that were verified with secret " + strconv.Itoa(n) + " of a source that has several."
		if n == MaxSecrets {
			meaning = "Authentic requests that were verified with secret " + strconv.Itoa(n) + ", or a later one, of a source that has several."
		}
		all = append(all, Word{Secret(n), OfSource, meaning})
	}
	return all
}

// rejections are the words for requests that were not acknowledged.
func rejections() (all []Word) {
	for _, reason := range []string{
		"unknown_source", "method", "too_large", "headers_too_large", "truncated", "slow", "rate", "address",
		"signature_missing", "signature_malformed", "signature_mismatch", "timestamp_missing", "timestamp_old",
		"timestamp_future", "handshake_refused", "unverified", "undecided", "crowded",
		"queue_full", "closing", "store", "timeout", "row_refused", "loop", "unanswered", "cell_away", "cell_refused", "cell_map", "panic", "internal",
	} {
		all = append(all, Word{Rejected(reason), OfSource, "Requests not acknowledged: " + reason + " (problems.md)."})
	}
	return all
}

// Words returns all words with their meanings.
func Words() []Word { return slices.Clone(words) }

// Match returns the words that a pattern names: one word, or all that begin with what is before a star at its end.
func Match(pattern string) (all []What) {
	prefix, family := strings.CutSuffix(pattern, "*")
	for _, w := range words {
		if string(w.What) == pattern || family && strings.HasPrefix(string(w.What), prefix) {
			all = append(all, w.What)
		}
	}
	return all
}

// Bin is the word for durations up to a bound, and above that of the bin before.
type Bin struct {
	Upper time.Duration // the last bin has none: 0
	What  What
}

// The bounds of bins, with their names in words.
var (
	ages = []bound{
		{time.Second, "1s"}, {10 * time.Second, "10s"}, {time.Minute, "1m"}, {5 * time.Minute, "5m"}, {30 * time.Minute, "30m"},
		{2 * time.Hour, "2h"}, {12 * time.Hour, "12h"}, {day, "1d"}, {3 * day, "3d"}, {7 * day, "7d"}, {30 * day, "30d"},
	}
	durations = []bound{
		{10 * time.Millisecond, "10ms"}, {30 * time.Millisecond, "30ms"}, {100 * time.Millisecond, "100ms"},
		{300 * time.Millisecond, "300ms"}, {time.Second, "1s"}, {3 * time.Second, "3s"}, {10 * time.Second, "10s"}, {30 * time.Second, "30s"},
	}
)

const day = 24 * time.Hour

type bound struct {
	upper time.Duration
	name  string
}

// longer is the name of the bin beyond the last bound.
const longer = "longer"

// bins are the words of a family of bins.
func bins(family What, bounds []bound, of Scope, subject string) (all []Word) {
	suffix := map[What]string{age: " after their events"}[family]
	before := ""
	for _, b := range bounds {
		meaning := subject + " at most " + b.name + suffix
		if before != "" {
			meaning += ", and more than " + before
		}
		all = append(all, Word{family + What(b.name), of, meaning + "."})
		before = b.name
	}
	return append(all, Word{family + longer, of, subject + " more than " + before + suffix + "."})
}

// Ages returns the bins for how long after an event its copies came.
func Ages() []Bin { return binsOf(age, ages) }

// Durations returns the bins for how long attempts took.
func Durations() []Bin { return binsOf(took, durations) }

func binsOf(family What, bounds []bound) (all []Bin) {
	for _, b := range bounds {
		all = append(all, Bin{b.upper, family + What(b.name)})
	}
	return append(all, Bin{0, family + longer})
}
