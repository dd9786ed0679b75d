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
		`		case c.Orders(r.Resource) && weight < 0:`,
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
		[]test{{"./internal/journal/engine", "TestFinish_survivesAnOutage"}, {yearly, "TestScenes/answers"}}},
	{"ill-loses-what-waits", "4. what waits for a destination that falls ill is never handed back", "internal/deliver/sendqueue.go",
		`		q.handBack(waiting, h.back(now))
		q.metrics.trips`,
		`		q.metrics.trips`,
		year},
	{"late-retry-after-is-not-heeded", "gateway: work goes in circles while an ill destination has asked for more time", "internal/deliver/health.go",
		`if h.busyTo.After(maxTime(now, h.until)) {`,
		`if false {`,
		[]test{{"./internal/deliver", "TestBreakerHeedsLateRetryAfter"}}},
	{"unkeyed-of-one-content", "4. events without a key whose content is the same are delivered under one Idempotency-Key", "internal/deliver/request.go",
		`key = source + "#" + strconv.FormatInt(w.EventID, 10)`,
		`sum := sha256.Sum256(w.Body)
		key = source + "#" + hex.EncodeToString(sum[:])`,
		[]test{{"./internal/deliver", "TestIdempotencyKey"}, {yearly, "TestScenes/claims"}}},
	{"every-type-is-open", "on_store_down: a type that is not open is delivered past the store", "internal/ingest/batch.go",
		`	return len(in.open) == 0 || slices`,
		`	return len(in.open) > 0 || slices`,
		scenes("outage")},
}

// simulatedCells has faults among cells that the simulation finds, each in the small plans of one scene.
var simulatedCells = []mutant{
	{"former-owner-is-not-asked", "cells: a key that moved is accepted without a word to the cell that owned it", "internal/cells/place.go",
		`); len(formers) > 0 {`,
		`); len(formers) > maxCells {`,
		scenes("moves")},
	{"silence-means-new", "cells: a key is accepted as new because the cell that owned it does not answer", "internal/cells/place.go",
		`			if found[f].err != nil && t.where[m.at] == here {`,
		`			if found[f].err != nil && t.where[m.at] == skipped {`,
		scenes("silent")},
	{"known-there-is-stored-here", "cells: a key that another cell has on record is accepted as new", "internal/cells/place.go",
		`			if found[f].keys[m.key] && t.where[m.at] == here {`,
		`			if found[f].keys[m.key] && t.where[m.at] == skipped {`,
		scenes("moves")},
	{"question-under-an-old-map", "cells: who is asked for a key answers before its store has the map of the question", "internal/cells/server.go",
		`	if !c.has(ctx, q.Map) {`,
		`	if c.state.Load().chain.Newest() == nil {`,
		scenes("fence")},
	{"map-is-not-kept-to", "cells: an event is stored under whatever map the store has by then", "internal/ingest/batch.go",
		`	entry.CellMap = b.cellMap`,
		`	if entry.CellMap = b.cellMap; b.cellMap != 0 {
		entry.CellMap = journal.AnyCellMap
	}`,
		scenes("fence")},
	{"divided-and-answered-early", "cells: a request is acknowledged although a cell has not stored its part", "internal/ingest/cells.go",
		`	failed := cmp.Or(group.Wait(), p.Away())
	if failed != nil {`,
		`	failed := cmp.Or(group.Wait(), p.Away())
	if p.Here() > 0 {
		failed = nil
	}
	if failed != nil {`,
		scenes("divided")},
	{"handed-on-answer-is-ours", "cells: a sender gets another answer than the owner gave", "internal/ingest/cells.go",
		`	own := answer{status: a.Status, header: a.Header, body: a.Body}`,
		`	own := answer{status: a.Status, header: http.Header{}}`,
		scenes("forwarded")},
	{"asked-too-short", "cells: nobody is asked any more for keys that are still remembered", "internal/cells/state.go",
		`a.Until.Add(remembered)`,
		`a.Until.Add(remembered / 2)`,
		scenes("retired")},
	{"asked-by-the-clock-of-the-database", "cells: a database whose clock is ahead ends the asking while keys are remembered", "internal/cells/state.go",
		`now.Before(own) {`,
		`!now.IsZero() {`,
		scenes("databases")},
	{"confirmed-by-the-clock-of-the-database", "cells: a database whose clock was late when a map was confirmed ends the asking early", "internal/cells/cells.go",
		`Number: number, At: c.opt.Now()})`,
		`Number: number})`,
		scenes("databases")},
	{"lost-cell-is-asked", "cells: a cell that was given up is asked all the same, and keys wait for it for ever", "internal/cells/state.go",
		`if c.Weight > 0 && !newest.lost(c.Name) {`,
		`if c.Weight > 0 {`,
		scenes("lost")},
	{"cell-does-not-learn", "cells: a cell goes on under its map after another one has told it of the next", "internal/cells/peer.go",
		`	if len(newer) > 0 {`,
		`	if len(newer) > maxCells {`,
		scenes("moves")},
}

// scenes are the small plans of a scene.
func scenes(name string) []test { return []test{{yearly, "TestScenes/" + name}} }

// year is the search or the plans that it has found: a search of seconds sees what it comes by.
var year = []test{{yearly, "TestYear|TestKept"}}

// yearly is where the simulation is. What is rare in large plans it looks for in small ones, see TestScenes.
const yearly = "./internal/tool/year"
