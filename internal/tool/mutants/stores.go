package main

// stores has faults in how claims are kept.
var stores = []mutant{
	{"memory-claims-without-lock", "2. two copies both find the key free", "memstore/tx.go",
		`if err := tx.lock(ctx, claimRow(req.Ref), timeout); err != nil {
		return hookonce.Claim{}, err
	}
	c := s.decide(req)`,
		`c := s.decide(req)`,
		[]test{{"./memstore", "TestConformance"}}},
	{"done-work-is-claimable", "2. work that is done is claimed again", "internal/claimsql/decision.go",
		`"(%s IN ('failed', 'dead') OR`,
		`"(%s IN ('failed', 'dead', 'done') OR`,
		[]test{{"./pgstore", "TestConformance"}, {"./sqlstore", "TestOtherDrivers"}, {"./sqlstore", "TestMySQL"}}},
	{"done-that-no-standby-has", "3. a copy is told that work is done which is in the primary alone", "internal/claimsql/postgres.sql",
		`CASE WHEN state <> 'processing' AND current_setting('synchronous_standby_names') <> ''`,
		`CASE WHEN state <> 'processing' AND current_setting('synchronous_standby_names') = 'none'`,
		[]test{{"./pgstore", "TestDoneIsWhatTheStandbyHas"}, {"./sqlstore", "TestDoneIsWhatTheStandbyHas"}}},
	{"cancelled-is-done", "3. a transaction that DynamoDB has cancelled is acknowledged", "dynamostore/within.go",
		`if err := b.refusals(reasons); err != nil || again {
		return again, err
	}
	return false, errUnexplained`,
		`_ = errUnexplained
	return again, (&Batch{guards: b.guards, writes: b.writes}).refusals(reasons[len(b.claims):])`,
		[]test{{"./dynamostore", "TestCancelledTransactionIsNotDone"}}},
	{"unseen-is-claimed", "2. a takeover does not look whether the claim is still the one that it saw", "internal/claimsql/postgres.sql",
		` AND claims.token = seen.token
	AND {{claimable "claims" "$7::timestamptz"}} AND {{open "claims" "$6::bytea"}}`,
		``,
		[]test{{"./pgstore", "TestConformance"}}},
	{"functions-take-what-they-did-not-see", "2. a takeover does not look whether the claim is still the one that it saw", "internal/ddl/postgres_functions.sql",
		`AND c.token = seen.token
                AND {{claimable "c" "at"}} AND {{open "c" "nullif(p_digest, '')"}}`,
		``,
		[]test{{"./internal/sqlapi", "TestConformance"}}},
	{"mysql-takes-what-it-did-not-see", "2. a takeover does not look whether the claim is still the one that it saw", "sqlstore/mysql.go",
		`WHERE source = @1 AND {{.Key}} = @2 AND token = @3 AND state = @9 AND first_seen = @10 AND pinned = @12 AND {{claimable "" "@8"}}`,
		`WHERE source = @1 AND {{.Key}} = @2 AND @3 = @3 AND @9 = @9 AND @10 = @10 AND @12 = @12 AND @8 = @8`,
		[]test{{"./sqlstore", "TestMySQL"}}},
	{"redis-takes-what-is-held", "2. work under a lease is claimed by a copy", "redisstore/lua/claim.lua",
		`local expired = state == 'processing' and ends ~= '' and tonumber(ends) <= tonumber(now)`,
		`local expired = state == 'processing' and ends ~= ''`,
		[]test{{"./redisstore", "TestConformance"}}},
	{"failed-work-is-a-copy", "5. work that failed is never claimed again", "internal/claimsql/decision.go",
		`"(%s IN ('failed', 'dead') OR (%s = 'processing' AND %s <= %s))", of(row, "state")`,
		`"(%s IN ('dead') OR (%s = 'processing' AND %s <= %s))", of(row, "state")`,
		[]test{{"./pgstore", "TestConformance"}}},
	{"no-trace-of-a-failure", "5. a failed attempt leaves no trace", "memstore/within.go",
		`err = s.trace(ctx, c, err)`,
		`_ = s.trace`,
		[]test{{"./memstore", "TestConformance"}}},
	{"memory-without-fence", "6. a worker that lost its lease records an outcome", "memstore/store.go",
		`if stored.Token != c.Token {`,
		`if false {`,
		[]test{{"./memstore", "TestConformance"}, {"./memstore", "TestHistory"}}},
	{"sql-without-fence", "6. a worker that lost its lease records an outcome", "internal/claimsql/postgres.sql",
		`WHERE source = $1::text AND key = $2::text AND token = $3::bigint AND state = 'processing'
	RETURNING`,
		`WHERE source = $1::text AND key = $2::text AND $3::bigint > 0 AND state = 'processing'
	RETURNING`,
		[]test{{"./pgstore", "TestConformance"}}},
	{"functions-tell-of-the-primary-alone", "3. a copy is told that work is done which is in the primary alone", "internal/ddl/postgres_functions.sql",
		`    IF current_setting('synchronous_standby_names') <> '' AND`,
		`    IF current_setting('synchronous_standby_names') = 'none' AND`,
		[]test{{"./pgstore", "TestDoneIsWhatTheStandbyHas"}}},
	{"functions-without-fence", "6. a worker that lost its lease records an outcome", "internal/ddl/postgres_functions.sql",
		`AND c.token = p_token AND c.state = 'processing'`,
		`AND c.state = 'processing'`,
		[]test{{"./internal/sqlapi", "TestConformance"}, {"./internal/sqlapi", "TestStaleOwner"}}},
	{"dialects-without-fence", "6. a worker that lost its lease records an outcome", "sqlstore/dialect.go",
		`UPDATE {{.}}claims SET state = 'done', lease_until = NULL, updated_at = @4{{.Passed}}
			WHERE source = @1 AND {{.Key}} = @2 AND token = @3 AND state = 'processing'`,
		`UPDATE {{.}}claims SET state = 'done', lease_until = NULL, updated_at = @4{{.Passed}}
			WHERE source = @1 AND {{.Key}} = @2 AND @3 > 0 AND state = 'processing'`,
		[]test{{"./sqlstore", "TestMySQL"}, {"./sqlstore", "TestMattn"}, {"./sqlstore", "TestOtherDrivers"}}},
	{"redis-without-fence", "6. a worker that lost its lease records an outcome", "redisstore/lua/fence.lua",
		`if current ~= token then return stale end`,
		``,
		[]test{{"./redisstore", "TestConformance"}}},
	{"no-deadline-is-stolen", "6. a claim without a deadline is taken over", "redisstore/lua/claim.lua",
		`and ends ~= '' and tonumber(ends) <= tonumber(now)`,
		`and (ends == '' or tonumber(ends) <= tonumber(now))`,
		[]test{{"./redisstore", "TestConformance"}}},
	{"effect-outside-the-claim", "7. what the handler wrote stays when its attempt failed", "memstore/within.go",
		`if err = fn(tx, c); err == nil {`,
		`if err = fn(tx, c); err != nil {
		tx.persist()
	}
	if err == nil {`,
		[]test{{"./memstore", "TestConformance"}}},
	{"commit-in-spite-of-the-handler", "7. the transaction of a handler that failed is committed", "pgstore/within.go",
		`if err = fn(handlerTx{w.tx, w, &w.hidden}, c); err == nil {
		release()
		err = w.commit(ctx)
	}`,
		`failed := fn(handlerTx{w.tx, w, &w.hidden}, c)
	release()
	if err = w.commit(ctx); err == nil {
		err = failed
	}`,
		[]test{{"./pgstore", "TestConformance"}}},
	{"ended-by-the-handler", "7. a handler rolls the transaction back by a statement, and its event counts as done", "pgstore/work.go",
		`looked = err == nil
		return err`,
		`looked, intact = err == nil, true
		return nil`,
		[]test{{"./pgstore", "TestHandlerEndsTheTransaction"}, {"./pgstore", "TestUnseenEndsOfTheTransaction"}}},
	{"failure-after-a-commit-is-done", "7. a handler commits by itself and fails, and what it did not do is lost", "pgstore/work.go",
		`if w.whole {`,
		`if true {`,
		[]test{{"./pgstore", "TestFailureAfterTheHandlersCommit"}}},
	{"failure-opens-what-others-did", "7. the failure of a handler opens the claim of another attempt, and its work is repeated", "internal/claimsql/postgres.sql",
		`CASE WHEN claims.xmin::text::bigint = $13::bigint & 4294967295 THEN`,
		`CASE WHEN $13::bigint IS NOT NULL THEN`,
		[]test{{"./pgstore", "TestFailureOpensNobodyElsesClaim"}}},
	{"torn-in-silence", "7. a claim that its handler committed stays done when the handler failed, and nobody is told", "pgstore/within.go",
		`case stands:
		err = claimsql.ErrStays`,
		`case stands:`,
		[]test{{"./pgstore", "TestChangeAfterTheHandlersCommitIsTold"}}},
	{"own-commit-is-a-duplicate", "7. a deadlock after a commit in passing is taken for a copy that did the work", "sqlstore/within.go",
		`case lost && a.made(c):`,
		`case false:`,
		[]test{{"./sqlstore", "TestADeadlockAfterACommitInPassingIsNoDuplicate"}}},
	{"refused-batch-is-done", "7. a handler hides that its batch was refused, and its event counts as done", "pgstore/work.go",
		`case w.refused.Load():`,
		`case false:`,
		[]test{{"./pgstore", "TestBatchOfAHandlerEndsNoTransaction"}}},
	{"undone-is-done", "7. a handler rolls back what it did, and it is committed", "pgstore/work.go",
		`case w.rolledBack.Load():`,
		`case false:`,
		[]test{{"./pgstore", "TestMisusedTransaction"}}},
	{"unsent-is-done", "7. a handler hides that a statement could not be sent, and its event counts as done", "pgstore/work.go",
		`case w.hidden.Load() != nil:`,
		`case false:`,
		[]test{{"./pgstore", "TestMisusedTransaction"}}},
	{"unknown-commit-is-a-failure", "10. a commit whose answer was lost counts as one that was not made", "pgstore/work.go",
		`return fmt.Errorf("commit: %w: %w", hookonce.ErrUnknownOutcome, err)
}`,
		`return fmt.Errorf("commit: %w", err)
}`,
		[]test{{"./pgstore", "TestFaults"}, {"./pgstore", "TestServerDiesDuringTheCommit"}}},
	{"unknown-commit-is-repeated", "10. a commit whose answer was lost is made again", "pgstore/work.go",
		`w.whole = intact || !looked`,
		`w.whole = false`,
		[]test{{"./pgstore", "TestFaults"}}},
	{"lost-connection-is-not-committed", "10. a connection that was lost is taken for a refusal of the commit", "internal/pgerror/pgerror.go",
		`case state == "", state == "40003", strings.HasPrefix(state, "08"), strings.HasPrefix(state, "57P"):
		return false`,
		`case state == "", state == "40003", strings.HasPrefix(state, "08"), strings.HasPrefix(state, "57P"):
		return true`,
		[]test{{"./internal/pgerror", "TestNotCommitted"}}},
	{"purge-of-open-work", "11. a purge deletes claims that are not done", "internal/claimsql/postgres.go",
		`purge(names{prefix: prefix, Table: "claims", Condition: "state = 'done'"})`,
		`purge(names{prefix: prefix, Table: "claims", Condition: "state <> 'failed'"})`,
		[]test{{"./pgstore", "TestConformance"}}},
	{"memory-purges-what-is-young", "11. a purge deletes ids before their time", "memstore/purge.go",
		`changed.Before(p.from) || !changed.Before(p.to) {`,
		`changed.Before(p.from) {`,
		[]test{{"./memstore", "TestConformance"}}},
	{"step-taken-twice", "outbox: a step of one event is asked for twice", "sqlstore/sqlite.go",
		`ON CONFLICT (source, key, step) DO NOTHING`,
		`ON CONFLICT (source, key, step) DO UPDATE SET payload = excluded.payload`,
		[]test{{"./sqlstore", "TestOtherDrivers"}, {"./sqlstore", "TestMattn"}}},
	{"older-is-newer", "guards: an older version counts as newer", "internal/claimsql/decision.go",
		`of(row, "version"), of(next, "version"), of(row, "version"), of(next, "version"), of(next, "kind"))`,
		`of(next, "version"), of(row, "version"), of(row, "version"), of(next, "version"), of(next, "kind"))`,
		[]test{{"./sqlstore", "TestOtherDrivers"}, {"./sqlstore", "TestMattn"}}},
}
