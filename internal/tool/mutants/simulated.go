package main

// simulated has faults that the simulation finds by itself, in plans that nobody wrote for them.
var simulated = []mutant{
	{"cached-before-the-commit", "13. the cache is told of events before they are stored", "internal/journal/engine/writer.go",
		`	err = w.call(opAccept`,
		`	for _, r := range w.batch {
		w.done.add(r.Event, r.ID, w.epoch)
	}
	err = w.call(opAccept`,
		year},
	{"lost-answer-is-dead", "5. an attempt whose answer was lost is the last one", "internal/deliver/attempt.go",
		`	return s.conclude(o, dest, w, retry.JudgeError(err, dest.Timeout))`,
		`	v := retry.JudgeError(err, dest.Timeout)
	v.Result = retry.Dead
	return s.conclude(o, dest, w, v)`,
		year},
	{"lost-answer-is-done", "4. an attempt whose answer was lost counts as a delivery", "internal/deliver/attempt.go",
		`	return s.conclude(o, dest, w, retry.JudgeError(err, dest.Timeout))`,
		`	v := retry.JudgeError(err, dest.Timeout)
	v.Result = retry.Done
	return s.conclude(o, dest, w, v)`,
		year},
	{"order-is-not-waited-for", "gateway: events of a resource are delivered side by side", "internal/journal/inflight/set.go",
		`		case c.Orders(r.Resource):`,
		`		case c.Orders(r.Resource) && r.Rank < 0:`,
		year},
	{"lease-is-not-extended", "6. a lease runs out while the work goes on", "internal/journal/engine/leases.go",
		`	for wait := x.opt.Lease / 6; x.pause(wait); {`,
		`	for wait := x.opt.Lease * 100; x.pause(wait); {`,
		year},
	{"outcome-is-dropped", "4. an outcome that could not be recorded is forgotten", "internal/journal/engine/finish.go",
		`	if err != nil {
		return false
	}`,
		`	if err != nil {
		return true
	}`,
		year},
	{"ill-loses-what-waits", "4. what waits for a destination that falls ill is never handed back", "internal/deliver/sendqueue.go",
		`		q.handBack(waiting, h.back(now))
		q.metrics.trips`,
		`		q.metrics.trips`,
		year},
	{"late-retry-after-is-not-heeded", "gateway: work goes in circles while an ill destination has asked for more time", "internal/deliver/health.go",
		`if h.busyTo.After(maxTime(now, h.until)) {`,
		`if false {`,
		[]test{{"./internal/deliver", "TestBreakerHeedsLateRetryAfter"}}},
}

// year is the search, and the plans that it has found.
var year = []test{{yearly, "TestYear|TestKept"}}

// yearly is where the simulation is. What is rare in large plans it looks for in small ones, see TestScenes.
const yearly = "./internal/tool/year"
