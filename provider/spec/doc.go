// Package spec is the language in which senders of webhooks are described, and the engine that
// applies it.
//
// # Describing a sender
//
// A [Spec] is data; [New] checks it, compiles it once for an endpoint, and returns a [Provider] that
// verifies requests and extracts their events. Nothing of a specification is parsed while requests are
// served. Its blocks are independent of each other: [Verify], [Split], [Extract], [Dedup], [Order],
// [Handshake], [Answer], [Limits] and [Reconcile]. A [Value] says where a piece of text is found in a request.
//
// Package provider has a catalogue of specifications, one file for each sender. Programs that receive
// from a sender that is not in it write a Spec of their own, in Go or, for the gateway, in YAML with
// the names in the fields' tags, which package specyaml reads. Senders that sign with JSON Web Tokens
// need package jose, which [Verify.Tokens] names.
//
// # From a request to its events
//
// [Provider.Open] answers handshakes, finds the signature that a secret made, and takes the events out
// of what was signed. [Provider.Sign] is its mirror: it signs as the sender does, for tests and for
// requests that are sent on. [Provider.Resigner] renews the signature of a request that is delivered
// later than its sender's tolerance allows.
//
// # Where is what
//
// The language is in spec.go (all blocks but these), verify.go, dedup.go, reconcile.go and value.go; validate.go and
// reconcile_check.go refuse what is not safe, and settings.go and secrets.go have what an endpoint adds. compile.go turns it into a [Provider], in provider.go.
//
// A request is read in request.go (json.go and split.go find places and items in its documents), its signature is found in
// signature.go and checked in authenticate.go by one of the mechanisms: hmac.go, publickey.go, jwt.go, token.go and
// scheme.go, which is code of the catalogue. handshake.go answers challenges; extract.go makes the events, and event_key.go
// their keys. sign.go is the mirror of all that. renewal.go decides which signatures stay good when a request is passed on,
// resign.go renews the others, and headers.go says which headers are passed on. listed.go extracts the events that a sender's own
// API lists.
//
// # What is safe
//
// Signatures are checked over the raw bytes of the body, in constant time, with every secret that is
// valid and every signature that the request carries. A rejection names the header, the part and the
// expected shape, and never a secret nor the expected signature.
//
// A key that is missing, empty, of another type than string, number or boolean, or present twice with
// different values is no key: the event is passed on unkeyed, because losing an event is worse than
// repeating one. [Spec.Validate] refuses keys that would lose events or let copies through.
package spec
