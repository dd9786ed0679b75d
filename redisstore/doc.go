// Package redisstore keeps claims in Redis 7 or Valkey, in lease mode: for effects that cannot share a
// transaction with a database, at a cost of one round trip per call.
//
//	client := redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true})
//	store := redisstore.New(client)
//	claim, err := store.Claim(ctx, request) // Acquired: do it, then store.Complete(ctx, claim)
//
// The guarantee is that of every store in lease mode, at least once with a stable key, for as long as
// Redis keeps what it was told. A claim is one hash under one key, and each method is one script on that
// key, so single servers, Sentinel and clusters behave alike. The time is the caller's; the server's
// clock only counts the time after which done claims expire (see [WithRetention]).
//
// # What Redis can lose
//
// A claim that is lost was never made: the next copy of its event is new, wins under token 1, and the
// effect happens again. Whoever was at work on the lost one is told so when it records the outcome
// ([hookonce.ErrNotFound]), unless another worker has begun anew by then: both have token 1, and are not
// told apart. An event is never lost that way, because the claims are all that is lost. Which claims
// those are depends on the server:
//
//   - Without an append-only file a restart forgets all of them, or all since the last snapshot.
//   - With appendfsync everysec, Redis's own default, a crash loses those of the last second, or two if
//     the disk is slow. With always it loses none, unless no-appendfsync-on-rewrite is yes, with which
//     nothing is synced while the file is rewritten.
//   - A replica that takes over lacks what it had not received, since replication is asynchronous. The
//     setting min-replicas-to-write bounds how far it can be behind while claims are accepted.
//   - With a maxmemory-policy other than noeviction the server deletes claims when its memory is full.
//     With noeviction it refuses new claims with an error, which is answered 503; copies of done work are
//     answered, and outcomes recorded, as ever.
//   - FLUSHALL forgets all of them.
//
// [Store.Inspect] finds these settings; call it when the program starts. Where an effect must not happen
// again, claim in the database that holds the effect, and let Redis only spare it the copies:
// [hookonce.Cached] with [NewCache] loses nothing whatever happens to Redis.
//
// # Memory
//
// A claim takes about 330 bytes with its key, and up to two kilobytes more with the text of a failure.
// Done claims go after the retention; claims that are not done (being worked on, failed, dead) never
// expire, because work that is not done is never purged. A response that is kept with a claim takes its
// own size on top.
package redisstore
