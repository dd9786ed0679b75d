package main

// library has faults in what applications call, whatever the store.
var library = []mutant{
	{"signature-of-nothing", "1. a request is taken for genuine whatever its signature says", "provider/spec/hmac.go",
		`ok = ok || hmac.Equal(bytesOf(sig), want)`,
		`ok = ok || hmac.Equal(bytesOf(sig), want) || true`,
		[]test{{"./provider", "TestMutatedVectors"}, {"./provider/spec", "TestHMAC"}}},
	{"copy-before-its-first", "3. a copy is acknowledged while the first is still being handled", "webhook.go",
		`return outcome{verdict: Busy, err: ErrBusy}
		case o.err == nil:`,
		`return outcome{verdict: Duplicate}
		case o.err == nil:`,
		[]test{{".", "TestWebhookWaitsForACopyBoundedly"}, {yearly, "TestScenes/claims"}}},
	{"unkeyed-share-a-key", "4. events without a key are taken for copies of each other", "webhook.go",
		`req := ClaimRequest{Ref: claimed(ev), Type: ev.Type, Digest: ev.Digest, Lease: h.lease}`,
		`req := ClaimRequest{Ref: claimed(ev), Type: ev.Type, Digest: ev.Digest, Lease: h.lease}
	if req.Key == "" && !ev.Coalesce {
		req.Key = "none"
	}`,
		[]test{{".", "TestWebhookUnkeyedIsNeverCollapsed"}, {yearly, "TestScenes/claims"}}},
	{"given-up-and-not-on-record", "4. the sender is told to stop although the failure could not be recorded", "webhook.go",
		`return IsPermanent(err) && !isAround(err, ErrTraceLost) && !isAround(err, ErrUnknownOutcome)`,
		`return IsPermanent(err)`,
		[]test{{".", "TestWebhookPermanentFailureThatIsNotOnRecord"}}},
	{"failed-and-not-on-record", "4. a client is told to give up although its failure is not on record, and a copy may have done the work", "problem.go",
		`case gaveUp(err):`,
		`case IsPermanent(err):`,
		[]test{{".", "TestIdempotentPermanentFailureThatIsNotOnRecord"}}},
	{"given-up-with-another", "4. a delivery that waited is acknowledged with other content that was given up, and nobody has handled it", "webhook.go",
		`case !o.dead || !differs:`,
		`case true:`,
		[]test{{".", "TestWebhookOtherContentThanWasGivenUp"}}},
	{"failure-acknowledged", "5. a handler that failed is acknowledged", "webhook.go",
		`func (o outcome) final() bool { return o.dead || o.err == nil }`,
		`func (o outcome) final() bool { return o.dead || o.err == nil || o.verdict == Acquired }`,
		[]test{{".", "TestWebhookRetriesFailedWork"}}},
	{"hidden-failure-is-done", "7. a handler hides that Enqueue or a guard failed, and its event counts as done", "context.go",
		`if f := w.failed.Load(); f != nil {`,
		`if f := w.failed.Load(); false {`,
		[]test{{".", "TestHiddenErrorOfACall"}, {"./pgstore", "TestPartsOfTheTransaction"}}},
	{"decided-elsewhere", "7. what a handler decides in another transaction stays when it fails", "context.go",
		`case part && !sameTx(w.store.(TxStore[Tx]), lent, tx):`,
		`case false:`,
		[]test{{".", "TestAnotherTransactionIsRefused"}, {"./pgstore", "TestPartsOfTheTransaction"}}},
	{"lost-lease-goes-on", "6. work goes on after its lease has run out", "internal/lease/lease.go",
		`func() { lost(*failed.Load()) })
	defer over.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-beat.C:
		}
		asked := time.Now()
		if !asked.Before(end) {
			lost(*failed.Load())
			return
		}`,
		`func() {})
	defer over.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-beat.C:
		}
		asked := time.Now()`,
		[]test{{"./internal/lease", "TestKeep"}, {".", "TestWebhookLeaseRanOutAndNobodyCame"}}},
	{"lease-of-who-hangs", "6. work goes on after its lease has run out, while the client of the store waits for its socket", "internal/lease/lease.go",
		`func() { lost(*failed.Load()) })`,
		`func() {})`,
		[]test{{"./internal/lease", "TestKeepOverAClientThatHangs"}}},
	{"lost-lease-is-done", "6. work whose claim was taken over is acknowledged", "lease.go",
		`taken = errors.Is(err, ErrStale)
`,
		`if errors.Is(err, ErrStale) {
		return false, nil
	}
`,
		[]test{{".", "TestWebhookLeaseIsLost"}}},
	{"hang-up-ends-the-work", "8. the handler ends when the sender hangs up", "webhook.go",
		`ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), h.timeout)`,
		`ctx, cancel := context.WithTimeout(ctx, h.timeout)`,
		[]test{{".", "TestWebhookOutlivesTheSender"}, {yearly, "TestScenes/claims"}}},
	{"hang-up-ends-the-idempotent-work", "8. work under an Idempotency-Key ends when the client hangs up", "idempotent.go",
		`ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), h.timeout)`,
		`ctx, cancel := context.WithTimeout(ctx, h.timeout)`,
		[]test{{".", "TestIdempotentWorkOutlivesTheClient"}}},
	{"our-fault-without-retry-after", "9. a 503 does not say when to come again", "internal/problem/problem.go",
		`own.RetryAfter = cmp.Or(own.RetryAfter, after)`,
		`own.RetryAfter = 0`,
		[]test{{".", "TestWebhookRetriesFailedWork"}, {yearly, "TestScenes/commits"}}},
	{"our-fault-is-theirs", "9. a fault of ours is answered as the sender's", "webhook.go",
		`return nil, undecided("the request could not be verified now", defaultRetry, err)`,
		`return nil, unverified(err)`,
		[]test{{".", "TestWebhookProviderThatMakesNoSense"}}},
	{"batch-ends-at-a-failure", "12. the events behind one that failed are not handled", "webhook.go",
		`failed = &o
		}`,
		`failed = &o
			break
		}`,
		[]test{{".", "TestWebhookBatchHandlesEveryEvent"}}},
	{"cache-told-of-failures", "13. the cache is told of work that failed", "cache.go",
		`if err == nil && c.Verdict == Acquired && c.Key != "" {`,
		`if c.Verdict == Acquired && c.Key != "" {`,
		[]test{{".", "TestCachedRemembersOnlyDone"}}},
	{"cache-told-of-others-work", "13. the cache remembers a claim that another has done so far", "cache.go",
		`if err == nil && c.Verdict == Acquired && c.Key != "" {`,
		`if err == nil && c.State == StateDone && c.Key != "" {`,
		[]test{{".", "TestCachedRemembersOnlyDone"}, {"./pgstore", "TestCacheDoesNotKeepWhatIsOpenedAgain"}}},
	{"scope-left-out", "Idempotency-Key: callers share their keys", "idempotencykey.go",
		`if scope != "" {`, `if false {`,
		[]test{{".", "TestIdempotentReplayToAnotherPrincipal"}, {".", "TestIdempotentKeepsCallersApart"}}},
	{"fingerprint-left-out", "Idempotency-Key: another request under the same key gets the first one's answer", "idempotent.go",
		`res := result{verdict: Duplicate, conflict: c.Conflict}
	if c.Conflict {`,
		`res := result{verdict: Duplicate}
	if false {`,
		[]test{{".", "TestIdempotentFingerprint"}}},
	{"passing-failure-for-good", "Idempotency-Key: a client is told not to come again after a failure that passes, because its page was too large", "idempotent.go",
		`case errors.Is(err, ErrResponseTooLarge) && !h.keeps(rec.Status(), c):`,
		`case false:`,
		[]test{{".", "TestIdempotentLeaseOversizeFailure"}, {".", "TestIdempotentOversizeFailure"}}},
	{"answer-kept-apart", "Idempotency-Key: the answer is not stored with the work", "idempotent.go",
		`return answer, h.store.KeepResponse(ctx, tx, held.Ref, *answer.again())
}

// refuseRollback`,
		`return answer, nil
}

// refuseRollback`,
		[]test{{".", "TestIdempotentRunsOnceAndReplays"}}},
	{"effect-key-of-the-attempt", "outbox: an effect that is tried again has another key", "outbox.go",
		`return EffectKey(ref, cmp.Or(e.Step, e.Name))`, `return EffectKey(ref, cmp.Or(e.Step, e.Name)+strconv.FormatInt(e.Token, 10))`,
		[]test{{".", "TestEffectKeysNeverChange"}}},
	{"relay-forgets-failures", "outbox: an effect that failed counts as done", "relay/attempt.go",
		`if o.status == StatusDone {
			return w.queue.CompleteEffect(ctx, e)`,
		`if o.status == StatusDone || o.status == StatusFailed {
			return w.queue.CompleteEffect(ctx, e)`,
		[]test{{"./relay", "TestFailuresAreTriedAgain"}}},
	{"effect-taken-for-its-event", "outbox: an effect that is posted is taken for a copy of the event that asked for it", "provider/hookonce.go",
		`if name := f.text(header.HookonceEffect); name != "" {`, `if name := f.text(header.HookonceEffect); false {`,
		[]test{{"./relay", "TestPostedEffectsAreEventsOfTheirOwn"}, {"./provider", "TestHookonceTakesAnEffectForItself"}}},
	{"one-name-takes-all", "outbox: a receiver that hangs holds up what goes to others", "relay/places.go",
		`if limit = free - min(kept, p.total/2); limit > 0 {`, `if limit = free; limit > 0 {`,
		[]test{{"./relay", "TestANameThatHangsHoldsUpNoOther"}}},
	{"suspects-by-time", "outbox: after a death the suspects of a receiver that hangs come before those of all others", "relay/relay.go",
		`if req.Suspects > 0 && len(r.turns) > 0 {`, `if req.Suspects > 0 && len(r.turns) < 0 {`,
		[]test{{"./relay", "TestSuspectsTakeTurnsByName"}}},
	{"given-up-unbegun", "outbox: an effect is given up that nobody has begun", "relay/attempt.go",
		`if l.last.Before(since) || e.EnqueuedAt.After(l.last) || l.excused[e.ID] {`, `if true || l.last.Before(since) {`,
		[]test{{"./relay", "TestLostTakesGiveNothingUp"}}},
	{"refused-is-carried-out", "Idempotency-Key: a refusal that is too large to be kept is told as carried out", "idempotent.go",
		`if status >= http.StatusBadRequest {
		said`, `if status < 0 {
		said`,
		[]test{{".", "TestIdempotentLeaseOversizeAnswer"}}},
	{"called-outside-and-send-again", "Idempotency-Key: a client without a key is told to send again what has called another system", "idempotent.go",
		`if res.problem != nil && pin.reached.Load() {`, `if false && pin.reached.Load() {`,
		[]test{{".", "TestIdempotentUnknownCommitWithoutAKey"}}},
	{"called-outside-and-final", "Idempotency-Key: a client is told that its request was not carried out although it has called another system", "idempotent.go",
		`c.Key != "" && errors.Is(res.err, ErrResponseTooLarge)`,
		`false`,
		[]test{{".", "TestIdempotentUnknownCommitWithoutAKey"}}},
	{"too-large-and-not-on-record", "4. a client is told to give up although its failure is not on record, and a copy may have done the work", "problem.go",
		`errors.Is(err, ErrResponseTooLarge) && !isAround(err, ErrTraceLost)`,
		`errors.Is(err, ErrResponseTooLarge)`,
		[]test{{".", "TestIdempotentLongAnswerWithoutATrace"}}},
	{"crashed-is-carried-out", "Idempotency-Key: a handler that crashed behind too large an answer counts as done", "idempotent.go",
		`case tooLarge && ended &&`,
		`case tooLarge && (ended || p != nil) &&`,
		[]test{{".", "TestIdempotentLeasePanicBehindALongAnswer"}}},
	{"late-lease-is-lost", "6. work whose lease was granted late is cut off, and done again", "internal/lease/lease.go",
		`time.NewTimer(time.Until(l.Asked.Add(third)))`,
		`time.NewTimer(third)`,
		[]test{{"./internal/lease", "TestKeep"}}},
	{"anybodys-certificate", "1. a certificate is taken from a host that is somebody else's", "provider/internal/scheme/aws_sns.go",
		"`sns\\.[a-z]+(-[a-z]+)+-[0-9]+\\.amazonaws", "`sns\\.[a-z0-9-]+\\.amazonaws",
		[]test{{"./provider", "TestSNSRejects"}}},
	{"met-is-its-own", "4. what a handler met of another claim counts as its own", "errors.go",
		`	case *workError:
		return false
`, ``,
		[]test{{".", "TestWebhookPermanentFailure"}}},
}
