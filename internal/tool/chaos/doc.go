// Package chaos tests the library against servers that lose their backends, freeze and cut connections, and
// against handlers that fail in every way.
//
// Each round sends events, in two copies at once and until they are acknowledged, to two processes of an
// application on one store. An adversary does harm at random moments meanwhile. What is acknowledged has to be on
// record at once, whatever becomes of the other copy, and in the end a count on a connection of its own has to
// find every effect once: none that was acknowledged and is missing, none twice, no half of one. The effects are
// in tables that have no unique index, so nothing but the claim keeps a copy out.
//
// Handlers that hide errors hide what came of work on the side, which may have ended their transaction. On Postgres
// they hide that of the effect, too: there a failed statement fails the transaction. Elsewhere a handler that hides
// that its effect failed is believed, because nothing tells that from an error that it took care of.
//
// It has tests only. -events sets how many events each round has, and -seed repeats what was drawn.
package chaos
