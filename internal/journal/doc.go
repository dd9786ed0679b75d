// Package journal is the gateway's durable record of events, and the engine that makes recording them
// fast.
//
// [Journal.Accept] returns after the event is committed: concurrent callers share one transaction
// (group commit), copies of an event that is being committed wait for it instead of reaching the
// database, and a bounded memory of finished keys answers late copies. A fresh event goes from the
// committed batch straight to [Journal.Work], already leased; a poller brings what that path loses:
// retries, re-driven events, and work whose process died. [Journal.Finish] records what became of it.
//
// The guarantee is at least once with a stable key: no acknowledged event is lost, and every delivery
// carries a fencing token, so only the current attempt can record its outcome.
//
// The engine stands on a [Store] and knows nothing of databases.
package journal
