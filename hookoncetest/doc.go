// Package hookoncetest tests that an endpoint has the effect of an event once, whatever its sender and the
// network do: by sending what they send on a bad day.
//
// Most tests need one function, [Storm], and the method [Report.Once] of what it returns:
//
//	storm := hookoncetest.Storm(t, handler, provider.Stripe("whsec_test"))
//	storm.Once(t, func(key string) int { return countOrders(t, db, key) })
//
// The handler may be any [http.Handler] that receives webhooks, with hookonce or without it. [StormOf]
// is for senders that cannot be imitated, and [ClientStorm] for endpoints whose clients send an
// Idempotency-Key. [Independent] shows that two endpoints of one provider do not swallow each other's events.
//
// [Sign] and [Deliver] make single deliveries, for tests of what a handler does. [Fail] lets the fake of
// what a handler calls fail when the storm has it so, [Crash] lets a store lose its connection around a
// commit, and [Clock] is a clock that stands still.
package hookoncetest
