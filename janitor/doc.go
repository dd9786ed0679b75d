// Package janitor forgets what was finished long ago: claims of events by source, and, where a retention says so, what
// guards and the outbox recorded.
//
//	j := janitor.New(store, janitor.Retention{
//		Events:  90 * 24 * time.Hour,
//		Sources: map[string]time.Duration{"audit": janitor.Forever},
//	})
//	err := j.Run(ctx) // until ctx ends; or the tables are missing, or newer than the program
//
// What is forgotten is not recognised any more: a copy that comes afterwards is handled as new. So a period must be
// at least twice as long as the sender may go on sending the same event (docs/providers.md has that of each), and
// longer than anybody may want to have events sent again by hand. Open work is never deleted, and work that failed
// only if a retention says for how long it is kept.
//
// One janitor for a database is enough. Several, in as many processes, do no harm: they share the work.
package janitor
