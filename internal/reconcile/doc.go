// Package reconcile finds the events that a sender made and that never arrived. Webhooks that are delivered at least once are
// also delivered never: the sender gives up, or its request was refused.
//
// [Run] reads the list that the sender's API has, page by page, as [spec.Reconcile] describes it; asks a [Ledger] which of the
// keys are on record; looks those that are not up a second time, because they may have been delivered meanwhile; and tells what
// is missing. It has the sender send them again, or hands them over to be stored, where it is told to. [Lister] is the reading
// alone.
//
// # What is safe
//
// The token goes to the server that the specification or its operator names, over TLS, and nowhere else: no redirect is
// followed, and a URL of the next page only to the same origin. It is in no error and no log, and neither is anything of an
// answer, but for its status and the host of a next page that is elsewhere. Answers are bounded in size and number, and a list that leads back to itself, or never ends, ends with an error
// that says so. What was found until then is reported.
//
// Nothing is decided here about a claim: what is stored meanwhile is seen by the one statement that stores a listed event.
// Running twice, or twice at once, does no harm.
//
// # Where is what
//
// reconcile.go has the types and what a run is given; run.go compares, and act.go sends again and stores. lister.go reads
// pages into entries, page.go takes an answer apart, and client.go asks: with the token, in time, and again where that makes
// sense. errors.go has what can go wrong, in words.
package reconcile
