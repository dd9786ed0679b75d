package main

// gateway has faults on the way of an event through the gateway.
var gateway = []mutant{
	{"accepted-before-the-commit", "3. an event is acknowledged before it is durable", "internal/journal/engine/writer.go",
		`	results, err := w.commit(now, lease)
		<-w.turn`,
		`	for _, s := range w.slots {
			s.settleAll(journal.Result{Status: journal.Accepted, ID: 1}, journal.Result{Status: journal.Duplicate, ID: 1}, nil)
		}
		w.slots = w.slots[:0]
		results, err := w.commit(now, lease)
		<-w.turn`,
		[]test{{"./internal/journal/engine", "TestAccept_answersAfterTheCommit"}, {"./cmd/hookonce/internal/endtoend", "TestRecord/sqlite"}}},
	{"came-back-is-done", "3. a delivery that leads back to its own gateway is acknowledged", "internal/ingest/batch.go",
		`if b.delivers != 0 && b.delivers == result.ID {`,
		`if false {`,
		[]test{{"./internal/gateway", "TestDestinationLeadsBack"}}},
	{"groups-of-all-sources", "3. sources share what is newest of objects that they call the same, and whose turn it is", "internal/journal/event.go",
		`return source + "/" + resource`,
		`return resource`,
		[]test{{"./internal/journal/sqlite", "TestStore"}, {"./internal/gateway", "TestSourcesDoNotShareResources"}}},
	{"ranks-of-any-kind", "3. a version is compared with a time, and dropped as old", "internal/journal/event.go",
		`coalesce(n.rank_kind = e.rank_kind, true)`,
		`true`,
		[]test{{"./internal/journal/sqlite", "TestStore"}, {"./internal/gateway", "TestRanksOfTwoKinds"}}},
	{"forgets-when-killed", "3. an event is acknowledged and stored by nobody if the process dies then", "internal/journal/sqlite/accept.go",
		`a.results[i] = journal.Result{Status: journal.Accepted, ID: e.ID}`,
		`a.results[i] = journal.Result{Status: journal.Accepted, ID: e.ID}
	if e.ReceivedAt.UnixMilli()%64 == 0 {
		return nil
	}`,
		[]test{{"./cmd/hookonce/internal/endtoend", "TestRecord/sqlite"}}},
	{"commit-not-synced", "3. SQLite is not told to reach the disk with each commit", "internal/journal/sqlite/file.go",
		`	"synchronous(FULL)",
`,
		`	"synchronous(NORMAL)",
`,
		[]test{{"./internal/journal/sqlite", "TestEveryCommitIsSynced"}, {"./internal/journal/sqlite", "TestPowerLoss"}}},
	{"commit-not-durable", "3. Postgres is not told to reach the disk", "internal/pgstandby/pgstandby.go",
		`('synchronous_commit', 'off', 'on')`,
		`('synchronous_commit', 'off', 'off')`,
		[]test{{"./internal/journal/pg", "TestStore|TestKilledServerLosesNothing"}}},
	{"cancelled-wait-is-not-heard", "3. where the role is set to hear no warnings, nobody hears that a commit was told to wait no longer for its standby", "internal/pgstandby/pgstandby.go",
		`('client_min_messages', 'error', 'warning')`,
		`('client_min_messages', 'error', 'error')`,
		[]test{{"./internal/journal/pg", "TestACancelledWaitIsNoCommit"}}},
	{"copy-that-no-standby-has", "3. a copy is acknowledged of an event that is in the primary alone", "internal/journal/pg/statements.go",
		`WHERE current_setting('synchronous_standby_names') <> '' AND NOT pg_is_in_recovery())`,
		`WHERE current_setting('synchronous_standby_names') = 'none' AND NOT pg_is_in_recovery())`,
		[]test{{"./internal/journal/pg", "TestACopyIsAcknowledgedWhenTheStandbyHasIt"}}},
	{"cancelled-wait-is-a-commit", "3. an event is acknowledged whose commit was told to wait no longer for its standby", "internal/pgstandby/pgstandby.go",
		`notice.Routine == "SyncRepWaitForLSN"`,
		`notice.Routine == ""`,
		[]test{{"./internal/journal/pg", "TestACancelledWaitIsNoCommit"}}},
	{"operator-told-of-what-no-standby-has", "gateway: a pause is told of whose commit was told to wait no longer for its standby", "internal/journal/pg/replay.go",
		`return s.waits.Heed(func() error { return s.changeUnheard(ctx, what, f) })`,
		`return s.changeUnheard(ctx, what, f)`,
		[]test{{"./internal/journal/pg", "TestACancelledWaitIsNoCommit"}}},
	{"said-again-and-on-no-standby", "gateway: a pause that is said again is told of, and is in the primary alone", "internal/journal/pg/replay.go",
		"`WITH ` + durable + `, ` + replicated + ` SELECT pg_advisory_xact_lock(hashtextextended($1, 0)) FROM replicated`",
		"`SELECT pg_advisory_xact_lock(hashtextextended($1, 0))`",
		[]test{{"./internal/journal/pg", "TestNothingIsToldThatNoStandbyHas"}}},
	{"unkeyed-follow-each-other", "4. an event without a key is answered as a copy of the one before it in the queue", "internal/journal/engine/queue.go",
		`if e.Key == "" || journal.Coalesces(e.Key) || e.Listed {`,
		`if journal.Coalesces(e.Key) || e.Listed {`,
		[]test{{"./internal/journal/engine", "TestAccept_neverCollapsesUnkeyed"}}},
	{"conflict-swallowed", "4. other content under a known key is an ordinary copy", "internal/journal/sqlite/accept.go",
		`if digest, _ := row[1].([]byte); e.Listed || unsupplied || bytes.Equal(digest, e.Digest) {`,
		`if digest, _ := row[1].([]byte); true || bytes.Equal(digest, e.Digest) {`,
		[]test{{"./internal/journal/sqlite", "TestStore"}}},
	{"aborted-is-done", "4. an attempt that a stop cut off counts as a delivery", "internal/deliver/attempt.go",
		`o.State, o.Due = journal.Pending, o.Started.Add(o.Duration)
		return`,
		`o.State, o.Due = journal.Done, o.Started.Add(o.Duration)
		return`,
		[]test{{"./internal/deliver", "TestStopHandsBack"}, {yearly, "TestScenes/unfinished"}}},
	{"pause-is-ignored", "gateway: a paused destination is delivered to", "internal/deliver/sendqueue.go",
		`func (q *sendQueue) paused() bool { return q.opt.Journal.Paused(q.name) }`,
		`func (q *sendQueue) paused() bool { return false && q.opt.Journal.Paused(q.name) }`,
		[]test{{"./internal/deliver", "TestPause"}, {yearly, "TestScenes/pause"}}},
	{"copy-does-not-redrive", "5. a copy of an event that failed is answered and changes nothing", "internal/journal/pg/statements_accept.go",
		`d.state NOT IN ('pending', 'processing')`,
		`d.state NOT IN ('pending', 'processing', 'failed')`,
		[]test{{"./internal/journal/pg", "TestStore"}}},
	{"dead-is-never-redriven", "5. a copy of an event that is dead is answered and changes nothing", "internal/journal/sqlite/statements.go",
		`AND state IN ('failed', 'dead') RETURNING`,
		`AND state IN ('failed') RETURNING`,
		[]test{{"./internal/journal/sqlite", "TestStore"}}},
	{"outcome-without-fence", "6. a worker that lost its lease ends the delivery", "internal/journal/pg/statements.go",
		`WHERE d.event_id = o.event_id AND d.destination = o.destination
		AND d.token = o.token AND d.state = 'processing' AND o.state = 'done'`,
		`WHERE d.event_id = o.event_id AND d.destination = o.destination
		AND d.state = 'processing' AND o.state = 'done'`,
		[]test{{"./internal/journal/pg", "TestStore"}}},
	{"lease-extended-by-others", "6. a worker that lost its lease extends it", "internal/journal/sqlite/statements.go",
		`SET due_at = ?
	WHERE event_id = ? AND destination = ? AND token = ? AND state = 'processing'`, `SET due_at = ?
	WHERE event_id = ? AND destination = ? AND token <> -? AND state = 'processing'`,
		[]test{{"./internal/journal/sqlite", "TestStore"}, {yearly, "TestScenes/held"}}},
	{"lost-lease-is-begun", "6. a delivery whose lease was lost while it waited is attempted", "internal/deliver/attempt.go",
		`if !s.opt.Journal.Current(w.Held) {`,
		`if false {`,
		[]test{{"./internal/deliver", "TestLostLeaseIsNotBegun"}}},
	{"sender-hangs-up-in-the-gateway", "8. an event is not stored when its sender hangs up", "internal/ingest/batch.go",
		`ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), in.acceptTimeout)`,
		`ctx, cancel := context.WithTimeout(ctx, in.acceptTimeout)`,
		[]test{{"./internal/ingest", "TestSenderHangsUpDuringTheCommit"}}},
	{"hang-up-ends-a-batch", "8. the rest of a request is not stored when its sender hangs up", "internal/ingest/batch.go",
		`ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), max(`,
		`ctx, cancel := context.WithTimeout(ctx, max(`,
		[]test{{yearly, "TestScenes/hang-ups"}}},
	{"failed-commit-is-acknowledged", "10. a commit that was reported failed is acknowledged", "internal/journal/engine/writer.go",
		`if err != nil {
			w.fail(fmt.Errorf("%w: %w", journal.ErrUnavailable, err))
		} else {`,
		`if err != nil {
			_ = fmt.Errorf
			results = make([]journal.Result, len(w.slots))
			for i := range results {
				results[i] = journal.Result{Status: journal.Accepted, ID: w.records[i].ID}
			}
			w.succeed(results, lease)
		} else {`,
		[]test{{"./internal/journal/engine", "TestAccept_persistedButReportedFailed"}, {yearly, "TestScenes/commits"}}},
	{"purge-of-open-deliveries", "11. a purge deletes events that are not delivered yet", "internal/journal/purge.go",
		`if f.Open || slices.Contains(p.Sources, f.Source) == p.Others {`,
		`if slices.Contains(p.Sources, f.Source) == p.Others {`,
		[]test{{"./internal/journal/sqlite", "TestStore"}, {"./internal/journal/pg", "TestStore"}}},
	{"ids-forgotten-early", "11. ids are purged when they are half as old as they are to be kept", "internal/journal/engine/upkeep.go",
		`s.Before, s.Limit = now.Add(-s.keep), purgeStep`,
		`s.Before, s.Limit = now.Add(-s.keep/2), purgeStep`,
		[]test{{"./internal/journal/engine", "TestJanitor"}}},
	{"bad-row-fails-its-neighbours", "12. a row that the store refuses fails the rows beside it", "internal/journal/sqlite/accept.go",
		`if rowRefused(err) {
		err = s.write(ctx, "accepting one by one", func(w *writer) error { return a.each(w) })
	}`,
		``,
		[]test{{"./internal/journal/sqlite", "TestStore"}}},
	{"observed-is-lost", "reconcile: what went past the gateway while its source was observed is taken for lost", "internal/reconcile/schedule/observed.go",
		`return m.Last.Error == observed`,
		`return false`,
		[]test{{"./internal/reconcile/schedule", "TestObserved"}, {"./internal/gateway", "TestObservedIsNotRecovered"}}},
	{"own-clock-settles", "reconcile: a clock that is ahead has what is made until it is right again never compared", "internal/reconcile/run.go",
		`at := ours.Add(-r.lister.ahead)`,
		`at := ours`,
		[]test{{"./internal/reconcile/schedule", "TestClockIsAheadForARun"}}},
	{"wrong-clock-goes-back", "reconcile: a clock that is behind has what was made before a source began done twice", "internal/reconcile/schedule/run.go",
		`report.Answered.IsZero() || beyond(now, report.Answered) || beyond(report.Answered, now)`,
		`beyond(now, now)`,
		[]test{{"./internal/reconcile/schedule", "TestMarkIsNotMovedBackByAWrongClock"}}},
	{"renamed-is-lost", "reconcile: what came under another name of the source is taken for lost", "internal/reconcile/run.go",
		`p.missing.Outcome, p.missing.Why = Held, why`,
		`p.missing.Why = why`,
		[]test{{"./internal/reconcile", "TestHeld"}, {"./internal/gateway", "TestNamedBackIsNotRecovered"}}},
	{"cache-of-the-accepted", "13. the cache is told of events that are not delivered yet", "internal/journal/engine/writer.go",
		`case res.Status == journal.Duplicate && res.Done, opened && len(r.Destinations) == 0:`,
		`case res.Status == journal.Duplicate, opened:`,
		[]test{{"./internal/journal/engine", "TestCache_onlyRemembersDone"}}},
	{"cache-survives-a-replay", "13. the cache knows as done what is being replayed", "internal/journal/engine/cache.go",
		`	if known != c.since || c.off {`,
		`	if c.off {`,
		[]test{{"./internal/journal/engine", "TestCache"}, {yearly, "TestScenes/replay"}}},
	{"clock-of-the-machine", "14. events are stamped by another clock", "internal/journal/engine/writer.go",
		`		now := w.opt.Now()
		lease := now.Add(w.opt.Lease)`,
		`		now := time.Now()
		lease := now.Add(w.opt.Lease)`,
		[]test{{"./internal/journal/engine", "TestAccept_usesTheClock"}, {yearly, "TestScenes/clocks"}}},
	{"answer-is-no-success", "gateway: an answer other than 2xx ends the delivery", "internal/retry/judge.go",
		`if status/100 == 2 {`,
		`if status/100 == 2 || status/100 == 5 {`,
		[]test{{"./internal/retry", "TestJudge"}, {"./internal/deliver", "TestStatuses"}}},
	{"key-of-the-attempt", "gateway: each attempt has another Idempotency-Key", "internal/deliver/request.go",
		`key = source + ":" + header.Safe(w.Key)`,
		`key = source + ":" + header.Safe(w.Key) + strconv.FormatInt(w.Token, 10)`,
		[]test{{"./internal/deliver", "TestKeyIsStableOverAttempts|TestIdempotencyKey"}}},
	{"answer-before-its-record", "sync: a sender gets an answer that is on no record yet", "internal/journal/engine/finish.go",
		`	err := f.call(opFinish,`,
		`	for _, o := range f.outcomes {
		f.waits.tell(journal.DeliveryID{EventID: o.EventID, Destination: o.Destination}, journal.DeliveryStatus{State: o.State, Response: o.Response})
	}
	err := f.call(opFinish,`,
		[]test{{"./internal/journal/engine", "TestAwait_answersAfterTheCommit"}, {yearly, "TestScenes/answers"}}},
	{"vanished-is-done", "sync: a delivery whose event is on no record counts as done", "internal/journal/pg/answer.go",
		`(SELECT 'done' FROM {{.}}events e WHERE e.id = t.event_id), 'absent')`,
		`(SELECT 'done' FROM {{.}}events e WHERE e.id = t.event_id), 'done')`,
		[]test{{"./internal/journal/pg", "TestStore"}}},
	{"vanished-is-acknowledged", "sync: an event that vanished while its sender waited is acknowledged", "internal/ingest/endpoint.go",
		`standing.State == journal.Absent && !r.Done:`,
		`standing.State == journal.Absent && false:`,
		[]test{{"./internal/ingest", "TestSyncEventVanishes"}}},
	{"untaken-past-the-store", "on_store_down: what a destination refused is acknowledged past the store", "internal/journal/bypass/bypass.go",
		`if o.State != journal.Done {`,
		`if o.State == journal.Processing {`,
		[]test{{"./internal/journal/engine", "TestBypass_partly"}, {yearly, "TestScenes/outage"}}},
	{"never-recorded", "on_store_down: what was delivered past the store is never recorded", "internal/journal/bypass/record.go",
		`	if b.Unrecorded() == 0 {
		return true, nil`,
		`	if b.Unrecorded() >= 0 {
		return true, nil`,
		[]test{{"./internal/journal/engine", "TestBypass_reconciles"}, {yearly, "TestScenes/outage"}}},
	{"lost-takes-are-tries", "gateway: an attempt that was never made uses up a try", "internal/journal/sqlite/statements.go",
		`tries = tries + (state <> 'processing')`,
		`tries = tries + 1`,
		[]test{{"./internal/journal/sqlite", "TestStore"}}},
	{"order-is-forgotten", "gateway: an event of a resource overtakes an older one", "internal/journal/sqlite/statements.go",
		`WHERE destination = ?1 AND resource = ?2 AND state <> 'dead' ORDER BY event_id LIMIT 1)`,
		`WHERE destination = ?1 AND resource = ?2 AND state <> 'dead' ORDER BY due_at LIMIT 1)`,
		[]test{{"./internal/journal/sqlite", "TestStore"}, {yearly, "TestScenes/order"}}},
	{"few-events-are-many", "gateway: two events that take turns in failing make a destination ill, and never die", "internal/deliver/health.go",
		`if slices.Contains(*events, id) {`, `if n := len(*events); n > 0 && (*events)[n-1] == id {`,
		[]test{{"./internal/deliver", "TestBreakerCounts"}}},
	{"stale-while-it-waited", "gateway: a version is dropped or marked only by what was known when it was handed out", "internal/deliver/sendqueue.go",
		`if o.State == journal.Done {`, `if false {`,
		[]test{{"./internal/deliver", "TestStaleWhileItWaited"}}},
	{"refused-takes-a-turn", "strangers: what a flood is refused is missed afterwards", "internal/ingest/throttle.go",
		`	if t.bucket.AllowN(now, 1) {
		return nil
	}`,
		`	r := t.bucket.ReserveN(now, 1)
	if r.DelayFrom(now) == 0 {
		return nil
	}
	r.CancelAt(now)`,
		[]test{{"./internal/ingest", "TestRefusalsTakeNothing"}}},
	{"ours-costs-a-try", "gateway: a fault of ours uses up an attempt", "internal/retry/judge.go",
		`v.Result, v.Signal, v.After = Uncounted, NoSignal, uncountedDelay`,
		`v.Signal = NoSignal`,
		[]test{{"./internal/deliver", "TestOurFaultCostsNoAttempt"}, {yearly, "TestScenes/descriptors"}}},
	{"other-protocols-pass", "a service behind a key takes HTTP/2 of a stranger on a connection that was handed on", "internal/idempotency/proxy.go",
		`			upgrade(r.Out)
`, ``,
		[]test{{"./internal/idempotency", "TestProtocolsThatAreHandedOn"}}},
	{"tunnels-do-not-count", "connections that were taken over leave every bound", "internal/connlimit/conn.go",
		`		c.tunnel()
`, `		c.end()
`,
		[]test{{"./internal/connlimit", "TestTunnels"}}},
	{"slow-senders-hear-nothing", "a client that takes long to send its request never hears what came of it", "internal/idempotency/service.go",
		`within(bodyTime, bodyTime+d)`, `within(bodyTime, d)`,
		[]test{{"./internal/idempotency", "TestPatient"}}},
	{"a-form-sent-twice", "operators: a forced replay that is sent twice delivers twice", "internal/journal/replay.go",
		`!r.DoneBefore.IsZero() && !d.Ended.Before(r.DoneBefore):`, `false:`,
		[]test{{"./internal/journal/journaltest", "TestMemory"}}},
	{"ill-with-nothing-to-try", "gateway: a destination of which nothing is left to try stays ill, and hides other trouble", "internal/deliver/sendqueue.go",
		`	h.doubt(now)
`, ``,
		[]test{{"./internal/deliver", "TestBreakerEndsWithNothingToTry"}}},
	{"a-lost-ring", "13. a gateway that was not told of a replay answers from memory that its event is done", "internal/journal/engine/notifier.go",
		`				n.tell()
				rest = notifyAgain
`, `				rest = notifyAgain
`,
		[]test{{"./internal/journal/engine", "TestCache_forgetsWhatIsReplayed|TestNotifier_broken"}}},
}
