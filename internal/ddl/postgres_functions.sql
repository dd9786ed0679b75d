-- The SQL functions: what the library does, for programs in any language. They work on the tables of the
-- library, under its laws, in the transaction of whoever calls them and with that role's rights. The clock
-- is the database's. docs/sql.md is the manual. The newest version that changes one of them makes all anew.
--
-- Functions in plpgsql set the search path, which keeps their plans and what the caller has put in front of
-- the system's names apart. Small ones in SQL are made part of the expression that calls them, and a
-- setting would prevent that: those that users call name the system's functions in full.
--
-- Names and keys are compared byte by byte, whatever the collation of what the caller passes.

CREATE FUNCTION {{.}}clock() RETURNS timestamptz LANGUAGE sql VOLATILE
AS 'SELECT pg_catalog.clock_timestamp()';
COMMENT ON FUNCTION {{.}}clock() IS
'The time that all functions of this schema take for now: that of the database. Tests may replace it.';

-- Names and keys. ----------------------------------------------------------------------------------

CREATE FUNCTION {{.}}well_formed(name text) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT pg_catalog.octet_length(pg_catalog.convert_to(name, 'UTF8')) <= 255 AND name COLLATE "C" !~ E'[\\u0001-\\u001f\\u007f-\\u009f]'
$$;
COMMENT ON FUNCTION {{.}}well_formed(text) IS
'Whether a name or key can be stored as it is: at most 255 bytes of UTF-8 without control characters.';

CREATE FUNCTION {{.}}normal_key(key text) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT CASE
        WHEN key IS NULL THEN ''
        WHEN {{.}}well_formed(key) AND NOT pg_catalog.starts_with(key COLLATE "C", 'sha256:') THEN key
        ELSE 'sha256:' || pg_catalog.encode(pg_catalog.sha256(pg_catalog.convert_to(key, 'UTF8')), 'hex')
    END
$$;
COMMENT ON FUNCTION {{.}}normal_key(text) IS
'The form in which a key is stored: itself, or "sha256:" and its SHA-256 if it is longer than 255 bytes, has control '
'characters, or begins like this. Null becomes the empty key. All functions apply it to the keys that they get, so '
'give them keys as the sender wrote them, and use it to look for a key in the tables.';

CREATE FUNCTION {{.}}join_key(VARIADIC parts text[]) RETURNS text LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE
        WHEN cardinality(parts) = 1 THEN coalesce(parts[1], '')
        ELSE (SELECT CASE WHEN bool_and(part <> '' AND part IS NOT NULL)
                THEN string_agg(octet_length(convert_to(part, 'UTF8')) || ':' || part, '' ORDER BY place) ELSE '' END
            FROM unnest(parts) WITH ORDINALITY AS p (part, place))
    END
$$;
COMMENT ON FUNCTION {{.}}join_key(text[]) IS
'One key made of several parts, each with its length in front, so that (ab, c) is not (a, bc). If a part is empty or '
'null the result is the empty key: what lacks a part cannot be recognised.';

CREATE FUNCTION {{.}}effect_key(source text, key text, step text) RETURNS text LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE WHEN joined = '' THEN '' ELSE left(encode(sha256(convert_to(joined, 'UTF8')), 'hex'), 32) END
    FROM {{.}}join_key(source, {{.}}normal_key(key), step) AS joined
$$;
COMMENT ON FUNCTION {{.}}effect_key(text, text, text) IS
'The Idempotency-Key to send with one step of the work under (source, key): the same at every attempt and in every '
'language, another one for any other event or step. Empty if a part is.';

CREATE FUNCTION {{.}}digest(body bytea) RETURNS bytea LANGUAGE sql IMMUTABLE
AS 'SELECT substring(pg_catalog.sha256(body) FOR 16)';
CREATE FUNCTION {{.}}digest(body text) RETURNS bytea LANGUAGE sql STABLE
AS $$ SELECT substring(pg_catalog.sha256(pg_catalog.convert_to(body, 'UTF8')) FOR 16) $$;
COMMENT ON FUNCTION {{.}}digest(bytea) IS
'What tells whether two copies have the same content: the first 16 bytes of the SHA-256. Null stays null.';
COMMENT ON FUNCTION {{.}}digest(text) IS 'The digest of a text''s UTF-8.';

CREATE FUNCTION {{.}}mind(what text, name text, may_be_empty boolean DEFAULT false) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF name IS NULL OR (name COLLATE "C" = '' AND NOT may_be_empty) THEN
        RAISE SQLSTATE 'WH003' USING MESSAGE = format('hookonce: the %s is missing', what);
    ELSIF NOT {{.}}well_formed(name) THEN
        RAISE SQLSTATE 'WH003' USING
            MESSAGE = format('hookonce: the %s is longer than 255 bytes or has control characters', what);
    END IF;
END $$;
COMMENT ON FUNCTION {{.}}mind(text, text, boolean) IS 'Part of the other functions: raises WH003 for a name that cannot be stored.';

-- Deciding who owns a key. -------------------------------------------------------------------------

CREATE TYPE {{.}}claim_answer AS (
    verdict     text,                                         -- accepted, duplicate, busy, pinned, unkeyed
    state       text,                                         -- processing, done, failed, dead; empty if nothing is stored
    token       bigint,                                       -- number of the attempt, and the fence
    lease_until timestamptz,                                  -- while processing; null: no deadline
    conflict    boolean,                                      -- the key was stored with another digest
    event_type  text,
    digest      bytea,
    first_seen  timestamptz,
    updated_at  timestamptz,
    last_error  text,
    pinned      bigint                                        -- the first attempt that may have had effects outside; 0: none
);

CREATE FUNCTION {{.}}answer(c {{.}}claims, verdict text, conflict boolean) RETURNS {{.}}claim_answer LANGUAGE sql IMMUTABLE AS $$
    SELECT ROW(verdict, coalesce((c).state, ''), coalesce((c).token, 0), (c).lease_until, conflict, coalesce((c).event_type, ''),
        (c).digest, (c).first_seen, (c).updated_at, coalesce((c).last_error, ''), coalesce((c).pinned, 0))::{{.}}claim_answer
$$;
COMMENT ON FUNCTION {{.}}answer({{.}}claims, text, boolean) IS 'Part of the other functions: the answer that a row of claims makes.';

CREATE FUNCTION {{.}}differ(a bytea, b bytea) RETURNS boolean LANGUAGE sql IMMUTABLE
AS $$ SELECT coalesce(a <> '' AND b <> '' AND a <> b, false) $$;
COMMENT ON FUNCTION {{.}}differ(bytea, bytea) IS 'Part of the other functions: whether both digests are known and not equal.';

CREATE FUNCTION {{.}}key_lock(p_source text, p_key text) RETURNS bigint LANGUAGE sql STABLE
AS $$ SELECT {{.KeyLock `p_source COLLATE "C"` `p_key COLLATE "C"`}} $$;
COMMENT ON FUNCTION {{.}}key_lock(text, text) IS
'Part of the other functions: the number of the advisory lock that whoever keeps a claim in an open transaction holds.';

-- Waits for the lock until the given time on the wall.
CREATE FUNCTION {{.}}await(p_lock bigint, p_until timestamptz) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    before text := current_setting('lock_timeout');
    ms     bigint;
BEGIN
    IF pg_try_advisory_xact_lock(p_lock) THEN
        RETURN true;
    END IF;
    ms := greatest(1, extract(epoch FROM p_until - clock_timestamp()) * 1000);  -- 0 would be for ever
    PERFORM set_config('lock_timeout', least(ms, 2147483647) || 'ms', true);
    PERFORM pg_advisory_xact_lock(p_lock);
    PERFORM set_config('lock_timeout', before, true);
    RETURN true;
EXCEPTION WHEN lock_not_available THEN                                          -- which restores the setting, too
    RETURN false;
END $$;
COMMENT ON FUNCTION {{.}}await(bigint, timestamptz) IS 'Part of the other functions: takes an advisory lock, with a bounded wait.';

CREATE FUNCTION {{.}}patience(p_wait interval) RETURNS timestamptz LANGUAGE sql VOLATILE AS $$
    SELECT clock_timestamp() + coalesce(p_wait, nullif(current_setting('lock_timeout')::interval, interval '0'), interval '2 seconds')
$$;
COMMENT ON FUNCTION {{.}}patience(interval) IS
'Part of the other functions: until when to wait for another transaction. Null: as long as lock_timeout says, 2 s if it is 0.';

-- What is done may be in the tables of the primary alone, of a commit that waited for a standby when the primary crashed, or
-- when its client gave up. A transaction that writes nothing waits for none.
CREATE FUNCTION {{.}}replicated() RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF current_setting('synchronous_standby_names') <> '' AND NOT pg_is_in_recovery() THEN
        PERFORM pg_logical_emit_message(true, 'hookonce', '');
    END IF;
END $$;
COMMENT ON FUNCTION {{.}}replicated() IS
'Part of the other functions: where commits wait for a standby, that of this transaction does, although it writes nothing.';

-- Every step that changes something decides by itself: the insert by the unique index, the update by the
-- token that was seen. Whoever wins holds the key's lock until the transaction ends, so nobody waits for
-- a row, which no setting of ours could bound. Whoever loses looks again, with a fresh snapshot.
CREATE FUNCTION {{.}}decide(
    p_source text, p_key text, p_type text, p_digest bytea, p_state text, p_seconds double precision, p_wait interval,
    p_pin boolean
) RETURNS {{.}}claim_answer LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    lock     bigint;
    patience timestamptz;                                      -- of all tries together
    at       timestamptz;
    lease    timestamptz;
    seen     {{.}}claims;
    won      {{.}}claims;
BEGIN
    PERFORM {{.}}mind('source', p_source);
    p_key := {{.}}normal_key(p_key);
    IF p_key COLLATE "C" = '' THEN
        RETURN {{.}}answer(NULL, 'unkeyed', false);
    END IF;
    lock := {{.}}key_lock(p_source, p_key);
    FOR tries IN 1..8 LOOP
        at := {{.}}clock();
        lease := CASE WHEN p_state = 'processing' AND p_seconds <> 0 THEN at + make_interval(secs => p_seconds) END;
        SELECT * INTO seen FROM {{.}}claims c WHERE c.source = p_source COLLATE "C" AND c.key = p_key COLLATE "C";
        IF NOT FOUND THEN
            INSERT INTO {{.}}claims (source, key, state, token, lease_until, event_type, digest, first_seen, updated_at, pinned)
            SELECT p_source, p_key, p_state, 1, lease, coalesce(p_type, ''), nullif(p_digest, ''), at, at, CASE WHEN p_pin THEN 1 ELSE 0 END
            WHERE pg_try_advisory_xact_lock(lock)
            ON CONFLICT (source, key) DO NOTHING
            RETURNING * INTO won;
        ELSIF seen.state = 'done' THEN
            PERFORM {{.}}replicated();
            RETURN {{.}}answer(seen, 'duplicate', {{.}}differ(seen.digest, p_digest));
        ELSIF {{claimable "seen" "at"}} IS NOT TRUE THEN
            RETURN {{.}}answer(seen, 'busy', {{.}}differ(seen.digest, p_digest));
        ELSIF NOT {{open "seen" "nullif(p_digest, '')"}} THEN
            RETURN {{.}}answer(seen, 'pinned', true);
        ELSIF pg_try_advisory_xact_lock(lock) THEN
            UPDATE {{.}}claims c SET {{taken "c" "p_state" "lease" "at" "p_type" "nullif(p_digest, '')" "p_pin"}}
            WHERE c.source = p_source COLLATE "C" AND c.key = p_key COLLATE "C" AND c.token = seen.token
                AND {{claimable "c" "at"}} AND {{open "c" "nullif(p_digest, '')"}}
            RETURNING * INTO won;
        END IF;
        IF won.token IS NOT NULL THEN
            RETURN {{.}}answer(won, 'accepted', {{.}}differ(seen.digest, p_digest));
        END IF;
        patience := coalesce(patience, {{.}}patience(p_wait));
        EXIT WHEN NOT {{.}}await(lock, patience);
    END LOOP;
    RETURN {{.}}answer(NULL, 'busy', false);
END $$;
COMMENT ON FUNCTION {{.}}decide(text, text, text, bytea, text, double precision, interval, boolean) IS
'Part of the other functions: creates or takes over a claim in the given state, or says why not.';

CREATE FUNCTION {{.}}busy(source text, key text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RAISE lock_not_available USING
        MESSAGE = format('hookonce: %s/%s is held by another worker', busy.source, {{.}}normal_key(busy.key)),
        HINT = 'Roll back and answer 503 with Retry-After: the owner may still fail, so this is no duplicate yet.';
END $$;
COMMENT ON FUNCTION {{.}}busy(text, text) IS 'Part of the other functions: raises 55P03.';

-- Claiming in the caller's transaction. ------------------------------------------------------------

-- Whether a claim is asked for outside a transaction cannot be seen when it is asked for: nothing tells a
-- statement that commits by itself from the first one after BEGIN. It can be seen at the commit: after BEGIN
-- that is another command, with a time of its own. So a claim that could be alone (the whole of its command,
-- called by the client itself and not by a function, with nothing written before it) leaves the time of its
-- command in a setting of the transaction, and a trigger looks at the commit whether anything came after it.
CREATE FUNCTION {{.}}alone() RETURNS boolean LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    stack text;
BEGIN
    IF current_setting('{{.Name}}.autocommit_warning', true) IN ('off', 'false', 'no', '0')
        OR statement_timestamp() - transaction_timestamp() > interval '1 second'
        OR pg_current_xact_id_if_assigned() IS NOT NULL
        -- One SELECT that calls nothing else, or something written might be in the same command.
        OR current_query() !~* E'^(\\s|/\\*[^*]*\\*/|--[^\\n]*\\n)*SELECT\\y[^;(]*\\y(claim|claim_detail)"?\\s*\\([^;(]*((digest|decode|convert_to|normal_key|join_key|::varchar)\\s*\\([^;(]*)*;?\\s*$'
    THEN
        RETURN false;
    END IF;
    GET DIAGNOSTICS stack = PG_CONTEXT;                         -- a line per function, the client's first call last
    RETURN strpos(substring(stack FROM E'[^\n]*$'), quote_ident('{{.Name}}') || '.claim') > 0;
END $$;
COMMENT ON FUNCTION {{.}}alone() IS 'Part of the other functions: whether the claim could be the whole of its transaction.';

CREATE FUNCTION {{.}}claimed_alone() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF current_setting('{{.Name}}.claiming', true) = statement_timestamp()::text THEN
        RAISE WARNING 'hookonce: %/% was claimed outside a transaction and is done at once, before any work for it', NEW.source, NEW.key
            USING HINT = 'Claim between BEGIN and COMMIT, together with the work: if the work fails now, it is lost. '
                'SET {{.Name}}.autocommit_warning = off if this is meant.';
    END IF;
    RETURN NULL;
END $$;
COMMENT ON FUNCTION {{.}}claimed_alone() IS 'Part of claim(): looks at the commit whether it was the whole of its transaction.';

-- The condition is all that other writers of claims pay for this. The setting is empty after a transaction that had it.
CREATE CONSTRAINT TRIGGER claimed_alone AFTER INSERT OR UPDATE ON {{.}}claims DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (current_setting('{{.Name}}.claiming', true) <> '') EXECUTE FUNCTION {{.}}claimed_alone();

CREATE FUNCTION {{.}}claim_detail(
    source text, key text, event_type text DEFAULT '', digest bytea DEFAULT NULL, wait interval DEFAULT NULL
) RETURNS {{.}}claim_answer LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF {{.}}alone() THEN
        PERFORM set_config('{{.Name}}.claiming', statement_timestamp()::text, true);
    END IF;
    RETURN {{.}}decide(claim_detail.source, claim_detail.key, claim_detail.event_type, claim_detail.digest, 'done', NULL, claim_detail.wait, false);
END $$;
COMMENT ON FUNCTION {{.}}claim_detail(text, text, text, bytea, interval) IS
'claim() with a full answer, as columns: SELECT * FROM. It raises nothing for a key that is busy or pinned, and nothing for a '
'conflict. Go on for the verdicts accepted and unkeyed. A token above 1 means that earlier attempts failed.';

CREATE FUNCTION {{.}}claim(
    source text, key text, event_type text DEFAULT '', body bytea DEFAULT NULL, wait interval DEFAULT NULL
) RETURNS boolean LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    c {{.}}claim_answer;
BEGIN
    IF starts_with(claim.source COLLATE "C", 'once:') THEN
        RAISE SQLSTATE 'WH003' USING MESSAGE = 'hookonce: sources that begin with "once:" belong to once()';
    END IF;
    c := {{.}}claim_detail(claim.source, claim.key, claim.event_type, {{.}}digest(claim.body), claim.wait);
    IF c.conflict THEN
        RAISE WARNING 'hookonce: % came again under the key % with other content', claim.source, {{.}}normal_key(claim.key)
            USING HINT = 'The sender reused a key, or what is used as a key is none.';
    END IF;
    IF c.verdict = 'busy' THEN
        PERFORM {{.}}busy(claim.source, claim.key);
    ELSIF c.verdict = 'pinned' THEN
        RAISE SQLSTATE 'WH005' USING
            MESSAGE = format('hookonce: %s/%s is bound to the content of attempt %s, and this is another', claim.source, {{.}}normal_key(claim.key), c.pinned),
            HINT = 'That attempt may have had effects outside: the same request may be tried again, and another one needs another key.';
    END IF;
    RETURN c.verdict IN ('accepted', 'unkeyed');
END $$;
COMMENT ON FUNCTION {{.}}claim(text, text, text, bytea, interval) IS
'Whether to go on with the event (source, key), in the transaction that will hold its effect: the claim commits with it '
'or not at all. False: it is done, commit and acknowledge. While another transaction holds the key it waits '
'(wait; else lock_timeout; else 2 s), and then, or when the key is leased, raises 55P03: roll back and answer 503. An '
'empty or null key is always true and writes nothing. Other content under a key that is known raises a warning, and WH005 '
'if an earlier attempt that failed may have had effects outside.';

CREATE FUNCTION {{.}}claim(source text, key text, event_type text, body text, wait interval DEFAULT NULL) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN {{.}}claim(claim.source, claim.key, claim.event_type, convert_to(claim.body, 'UTF8'), claim.wait);
END $$;
COMMENT ON FUNCTION {{.}}claim(text, text, text, text, interval) IS 'claim() with the body as text.';

CREATE FUNCTION {{.}}failed(
    source text, key text, error text DEFAULT '', dead boolean DEFAULT false, token bigint DEFAULT NULL,
    event_type text DEFAULT '', digest bytea DEFAULT NULL, began timestamptz DEFAULT NULL, pinned boolean DEFAULT false
) RETURNS boolean LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    named text := {{.}}normal_key(failed.key);
    at    timestamptz;
BEGIN
    PERFORM {{.}}mind('source', failed.source);
    IF named COLLATE "C" = '' THEN
        RETURN false;
    ELSIF NOT {{.}}await({{.}}key_lock(failed.source, named), {{.}}patience(NULL)) THEN
        PERFORM {{.}}busy(failed.source, failed.key);
    END IF;
    at := {{.}}clock();
    INSERT INTO {{.}}claims AS c (source, key, state, token, event_type, digest, first_seen, updated_at, last_error, pinned)
    VALUES (failed.source, named, CASE WHEN failed.dead THEN 'dead' ELSE 'failed' END, coalesce(failed.token, 1),
        coalesce(failed.event_type, ''), nullif(failed.digest, ''), CASE WHEN isfinite(failed.began) THEN failed.began ELSE at END, at, {{.}}cut(failed.error),
        CASE WHEN failed.pinned THEN coalesce(failed.token, 1) ELSE 0 END)
    ON CONFLICT (source, key) DO UPDATE SET
        state = excluded.state, token = coalesce(failed.token, c.token + 1), lease_until = NULL,
        event_type = coalesce(nullif(excluded.event_type, ''), c.event_type), digest = coalesce(excluded.digest, c.digest),
        updated_at = excluded.updated_at, last_error = excluded.last_error,
        pinned = CASE WHEN failed.pinned AND c.pinned = 0 THEN coalesce(failed.token, c.token + 1) ELSE c.pinned END
    WHERE {{open "c" "excluded.digest"}} AND CASE
        WHEN failed.token > c.token OR (failed.token IS NULL AND c.state <> 'dead') THEN {{claimable "c" "at"}}
        WHEN failed.token = c.token OR failed.token IS NULL THEN {{repeatable "c" "excluded.state"}}
    END;
    RETURN FOUND;
END $$;
COMMENT ON FUNCTION {{.}}failed(text, text, text, boolean, bigint, text, bytea, timestamptz, boolean) IS
'Records, in a transaction of its own after the rollback, that the work failed, so that "received but never completed" can '
'be asked, and returns whether that is on record now. It never overwrites done work, a lease that somebody holds or, given '
'the token of claim_detail(), a newer attempt. dead: given up; acknowledge that only if this returned true. The next claim '
'tries again either way. Without a token it counts one attempt more, and leaves dead work dead. pinned: the attempt may have '
'had effects outside, so that only a claim with the same digest may try again; say the digest then.';

CREATE FUNCTION {{.}}cut(error text) RETURNS text LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    bytes bytea   := convert_to(coalesce(error, ''), 'UTF8');
    size  integer := 1000;
BEGIN
    IF length(bytes) <= size THEN
        RETURN coalesce(error, '');
    END IF;
    WHILE get_byte(bytes, size) & 192 = 128 LOOP               -- inside a character
        size := size - 1;
    END LOOP;
    RETURN convert_from(substring(bytes FOR size), 'UTF8');
END $$;
COMMENT ON FUNCTION {{.}}cut(text) IS 'Part of the other functions: at most 1000 bytes of an error''s text.';

-- Claiming under a lease. --------------------------------------------------------------------------

CREATE FUNCTION {{.}}lease(
    source text, key text, seconds double precision, event_type text DEFAULT '', digest bytea DEFAULT NULL, wait interval DEFAULT NULL,
    pinned boolean DEFAULT false
) RETURNS {{.}}claim_answer LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN {{.}}decide(lease.source, lease.key, lease.event_type, lease.digest, 'processing', lease.seconds, lease.wait, lease.pinned);
END $$;
COMMENT ON FUNCTION {{.}}lease(text, text, double precision, text, bytea, interval, boolean) IS
'Claims for work that cannot be in one transaction with its record: SELECT * FROM, outside a transaction. The verdict '
'accepted means that the work is the caller''s under the token, for that many seconds; 0 or null: without a deadline, never '
'to be taken over. Then complete() or fail(), and extend() in between if it takes longer. Guarantee: at least once, under '
'the same key. pinned: from now on only a claim with the same digest may try again, unless fail() takes that back.';

CREATE FUNCTION {{.}}change(
    p_source text, p_key text, p_token bigint, p_state text, p_seconds double precision, p_error text, p_repeats text[],
    p_pin boolean DEFAULT NULL
) RETURNS {{.}}claims LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    at     timestamptz;
    stored {{.}}claims;
BEGIN
    PERFORM {{.}}mind('source', p_source);
    p_key := {{.}}normal_key(p_key);
    IF NOT {{.}}await({{.}}key_lock(p_source, p_key), {{.}}patience(NULL)) THEN
        PERFORM {{.}}busy(p_source, p_key);
    END IF;
    at := {{.}}clock();
    UPDATE {{.}}claims c SET state = p_state, lease_until = at + make_interval(secs => p_seconds),
        last_error = coalesce(p_error, c.last_error), updated_at = at,
        pinned = CASE WHEN p_pin IS NULL THEN c.pinned ELSE {{pinned "c" "p_pin"}} END
    WHERE c.source = p_source COLLATE "C" AND c.key = p_key COLLATE "C" AND c.token = p_token AND c.state = 'processing'
    RETURNING * INTO stored;
    IF FOUND THEN
        RETURN stored;
    END IF;
    SELECT * INTO stored FROM {{.}}claims c WHERE c.source = p_source COLLATE "C" AND c.key = p_key COLLATE "C";
    IF NOT FOUND THEN
        RAISE SQLSTATE 'WH002' USING MESSAGE = format('hookonce: there is no claim %s/%s', p_source, p_key);
    ELSIF stored.token IS DISTINCT FROM p_token OR NOT stored.state = ANY (p_repeats) THEN
        RAISE SQLSTATE 'WH001' USING
            MESSAGE = format('hookonce: %s/%s is %s under token %s, not %s', p_source, p_key, stored.state, stored.token, p_token),
            HINT = 'The lease ran out and somebody else took over: this work is not the caller''s any more.';
    END IF;
    PERFORM {{.}}replicated();
    RETURN stored;
END $$;
COMMENT ON FUNCTION {{.}}change(text, text, bigint, text, double precision, text, text[], boolean) IS
'Part of the other functions: changes a claim that is processing under the token. A failure takes back what its own attempt '
'pinned, and nothing that an earlier one did.';

CREATE FUNCTION {{.}}complete(source text, key text, token bigint) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM {{.}}change(complete.source, complete.key, complete.token, 'done', NULL, NULL, '{done}');
END $$;
COMMENT ON FUNCTION {{.}}complete(text, text, bigint) IS
'Records that the work under a lease is done. Raises WH001 if the token is not current any more, WH002 if there is no such '
'claim. May be repeated.';

CREATE FUNCTION {{.}}fail(
    source text, key text, token bigint, error text DEFAULT '', dead boolean DEFAULT false, pinned boolean DEFAULT false,
    forget timestamptz DEFAULT NULL
) RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF fail.forget IS NOT NULL AND fail.token = 1 AND NOT fail.dead AND NOT fail.pinned THEN
        PERFORM {{.}}forget(fail.source, fail.key, fail.forget);
        RETURN;
    END IF;
    PERFORM {{.}}change(fail.source, fail.key, fail.token, CASE WHEN fail.dead THEN 'dead' ELSE 'failed' END, NULL,
        {{.}}cut(fail.error), '{failed,dead}', fail.pinned);
END $$;
COMMENT ON FUNCTION {{.}}fail(text, text, bigint, text, boolean, boolean, timestamptz) IS
'Records that the work under a lease failed, and frees it for the next copy. dead: given up. pinned: the attempt may have had '
'effects outside, so that only a claim with the same digest may try again; false takes back what lease() pinned for this '
'attempt, and nothing that an earlier one did. forget, the first_seen that lease() returned: a first attempt that was refused '
'before anything was done leaves no row. Raises WH001 if the token is not current any more, WH002 if there is no such claim. '
'May be repeated.';

-- Clients whose times have milliseconds hand back less than lease() gave them.
CREATE FUNCTION {{.}}forget(p_source text, p_key text, p_first_seen timestamptz) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    stored {{.}}claims;
BEGIN
    PERFORM {{.}}mind('source', p_source);
    p_key := {{.}}normal_key(p_key);
    IF NOT {{.}}await({{.}}key_lock(p_source, p_key), {{.}}patience(NULL)) THEN
        PERFORM {{.}}busy(p_source, p_key);
    END IF;
    DELETE FROM {{.}}claims c WHERE c.source = p_source COLLATE "C" AND c.key = p_key COLLATE "C" AND c.token = 1
        AND c.state = 'processing' AND p_first_seen IN (c.first_seen, date_trunc('milliseconds', c.first_seen));
    IF FOUND THEN
        RETURN;
    END IF;
    SELECT * INTO stored FROM {{.}}claims c WHERE c.source = p_source COLLATE "C" AND c.key = p_key COLLATE "C";
    IF FOUND AND (stored.token <> 1 OR stored.state NOT IN ('failed', 'dead')) THEN
        RAISE SQLSTATE 'WH001' USING
            MESSAGE = format('hookonce: %s/%s is %s under token %s, and not the first attempt of %s', p_source, p_key, stored.state, stored.token, p_first_seen),
            HINT = 'Somebody else has begun: this work is not the caller''s any more.';
    END IF;
    PERFORM {{.}}replicated();
END $$;
COMMENT ON FUNCTION {{.}}forget(text, text, timestamptz) IS
'Part of the other functions: deletes the first attempt that began at that time, and nobody else''s.';

CREATE FUNCTION {{.}}extend(source text, key text, token bigint, seconds double precision) RETURNS timestamptz
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF seconds > 0 THEN
        RETURN ({{.}}change(extend.source, extend.key, extend.token, 'processing', extend.seconds, NULL, '{}')).lease_until;
    END IF;
    RAISE invalid_parameter_value USING MESSAGE = format('hookonce: a lease cannot be extended by %s seconds', seconds);
END $$;
COMMENT ON FUNCTION {{.}}extend(text, text, bigint, double precision) IS
'Moves the end of a lease to so many seconds from now, which it returns. Raises WH001 if the token is not current any more, '
'WH002 if there is no such claim.';

-- Looking and cleaning up. -------------------------------------------------------------------------

CREATE FUNCTION {{.}}lookup(source text, key text) RETURNS SETOF {{.}}claims
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN QUERY SELECT * FROM {{.}}claims c WHERE c.source = lookup.source COLLATE "C" AND c.key = {{.}}normal_key(lookup.key) COLLATE "C";
END $$;
COMMENT ON FUNCTION {{.}}lookup(text, text) IS 'The claim as it stands; no row if there is none.';

-- One source after the other: what one keeps for longer is not read for the others.
CREATE FUNCTION {{.}}purge(
    before timestamptz, max_rows integer DEFAULT 1000, kind text DEFAULT 'events', source text DEFAULT NULL,
    except_sources text[] DEFAULT '{}')
RETURNS integer LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    earliest constant timestamptz := '2020-01-01 00:00:00Z';  -- no clock that was right wrote anything before
    prefix   constant text := CASE purge.kind WHEN 'once' THEN 'once:' ELSE '' END;
    owner    text COLLATE "C" := '';
    sum      integer := 0;
    gone     integer;
BEGIN
    IF purge.kind NOT IN ('events', 'failed', 'once', 'versions', 'states', 'effects') THEN
        RAISE SQLSTATE 'WH003' USING MESSAGE = format('hookonce: purge() knows no kind %s', quote_literal(purge.kind)),
            HINT = 'The kinds are events, failed, once, versions, states and effects.';
    ELSIF purge.before > {{.}}clock() THEN
        RAISE SQLSTATE 'WH003' USING MESSAGE = format('hookonce: purge() of what was done before %s, which is in the future', purge.before),
            HINT = 'It would forget what was done a moment ago. Go back at least twice as far as the sender sends again: now() - interval ''90 days''.';
    ELSIF (purge.source IS NOT NULL OR cardinality(purge.except_sources) > 0) AND purge.kind IN ('versions', 'states')
        OR purge.source IS NOT NULL AND cardinality(purge.except_sources) > 0
        OR purge.kind IN ('events', 'failed') AND starts_with(purge.source, 'once:') THEN
        RAISE SQLSTATE 'WH003' USING MESSAGE = 'hookonce: purge() cannot do that',
            HINT = 'Name one source or those to leave alone; versions and states have none; keys of once() have a kind of their own.';
    END IF;
    IF purge.kind = 'versions' THEN
        DELETE FROM {{.}}versions WHERE ctid = ANY (ARRAY(
            SELECT ctid FROM {{.}}versions WHERE updated_at >= earliest AND updated_at < purge.before
            LIMIT greatest(0, purge.max_rows) FOR UPDATE SKIP LOCKED));
        GET DIAGNOSTICS sum = ROW_COUNT;
    ELSIF purge.kind = 'states' THEN
        DELETE FROM {{.}}states WHERE ctid = ANY (ARRAY(
            SELECT ctid FROM {{.}}states WHERE updated_at >= earliest AND updated_at < purge.before
            LIMIT greatest(0, purge.max_rows) FOR UPDATE SKIP LOCKED));
        GET DIAGNOSTICS sum = ROW_COUNT;
    END IF;
    WHILE purge.kind NOT IN ('versions', 'states') AND sum < purge.max_rows LOOP
        IF purge.source IS NOT NULL THEN
            EXIT WHEN owner = prefix || purge.source;
            owner := prefix || purge.source;
        ELSIF purge.kind = 'effects' THEN
            SELECT min(e.source) INTO owner FROM {{.}}effects e WHERE e.source > owner;
        ELSE
            SELECT min(c.source) INTO owner FROM {{.}}claims c WHERE c.source > owner;
        END IF;
        EXIT WHEN owner IS NULL;
        CONTINUE WHEN purge.kind = 'once' AND NOT starts_with(owner, prefix) OR purge.kind IN ('events', 'failed') AND starts_with(owner, 'once:')
            OR purge.kind IN ('events', 'failed') AND purge.source IS NULL AND starts_with(owner, 'gateway:')
            OR owner = ANY (SELECT prefix || e FROM unnest(purge.except_sources) AS e);
        IF purge.kind = 'effects' THEN
            DELETE FROM {{.}}effects WHERE ctid = ANY (ARRAY(
                SELECT e.ctid FROM {{.}}effects e WHERE e.source = owner AND e.state = 'done' AND e.updated_at >= earliest AND e.updated_at < purge.before
                ORDER BY e.updated_at LIMIT purge.max_rows - sum FOR UPDATE SKIP LOCKED));
            GET DIAGNOSTICS gone = ROW_COUNT;
            sum := sum + gone;
            CONTINUE;
        END IF;
        IF purge.kind = 'failed' THEN
            WITH chosen AS MATERIALIZED (
                SELECT c.ctid FROM {{.}}claims c WHERE c.source = owner AND c.state IN ('failed', 'dead') AND c.updated_at >= earliest AND c.updated_at < purge.before
                ORDER BY c.updated_at LIMIT purge.max_rows - sum FOR UPDATE SKIP LOCKED
            ), claims AS (
                DELETE FROM {{.}}claims WHERE ctid = ANY (ARRAY(SELECT ctid FROM chosen)) RETURNING source, key
            ), responses AS (
                DELETE FROM {{.}}responses r USING claims c WHERE r.source = c.source AND r.key = c.key
            )
            SELECT count(*) INTO gone FROM claims;
        ELSE
            WITH chosen AS MATERIALIZED (
                SELECT c.ctid FROM {{.}}claims c WHERE c.source = owner AND c.state = 'done' AND c.updated_at >= earliest AND c.updated_at < purge.before
                ORDER BY c.updated_at LIMIT purge.max_rows - sum FOR UPDATE SKIP LOCKED
            ), claims AS (
                DELETE FROM {{.}}claims WHERE ctid = ANY (ARRAY(SELECT ctid FROM chosen)) RETURNING source, key
            ), responses AS (
                DELETE FROM {{.}}responses r USING claims c WHERE r.source = c.source AND r.key = c.key
            )
            SELECT count(*) INTO gone FROM claims;
        END IF;
        sum := sum + gone;
    END LOOP;
    RETURN sum;
END $$;
COMMENT ON FUNCTION {{.}}purge(timestamptz, integer, text, text, text[]) IS
'Forgets at most max_rows things that were done, or failed, before the given time, and returns how many. Call it again while it returns '
'max_rows. Kind is what is forgotten: events (claims that are done, but those of once()), failed (claims that failed or are dead), once, versions, states, or effects that are done; source '
'narrows it to one, of once to a scope. Without it, claims of a gateway, whose sources begin with gateway:, are left to that gateway. What comes afterwards is new: go back at least twice as far as the sender sends again. Rows '
'that were changed before 2020, or in the future, are left alone.';

-- Guards and the outbox. ---------------------------------------------------------------------------

CREATE FUNCTION {{.}}once(scope text, key text) RETURNS boolean LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    verdict text;
BEGIN
    IF coalesce(once.scope, '') = '' OR coalesce(once.key, '') = '' THEN
        RAISE SQLSTATE 'WH003' USING MESSAGE = 'hookonce: once() needs a scope and a key';
    END IF;
    verdict := ({{.}}claim_detail('once:' || once.scope, once.key)).verdict;
    IF verdict = 'busy' THEN
        PERFORM {{.}}busy('once:' || once.scope, once.key);
    END IF;
    RETURN verdict = 'accepted';
END $$;
COMMENT ON FUNCTION {{.}}once(text, text) IS
'Whether the work under key is the caller''s to do, in this transaction: one fee per payout, whichever event asks for it. '
'False: it is done. Waits for another transaction like claim(), and raises 55P03 like it.';

CREATE FUNCTION {{.}}newer(resource text, version bigint, kind text DEFAULT 'version') RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
    IF newer.kind IS NULL OR newer.kind COLLATE "C" NOT IN ('version', 'time') THEN
        RAISE SQLSTATE 'WH003' USING MESSAGE = format('hookonce: there are no ranks of kind %L; use ''version'' or ''time''', newer.kind);
    END IF;
    IF newer.version IS NULL THEN
        RETURN true;
    END IF;
    PERFORM {{.}}mind('resource', newer.resource);
    INSERT INTO {{.}}versions AS v (resource, version, kind, updated_at)
    VALUES (newer.resource, newer.version, newer.kind, {{.}}clock())
    ON CONFLICT (resource) DO UPDATE SET version = excluded.version, kind = excluded.kind, updated_at = excluded.updated_at
    WHERE {{supersedes "v" "excluded"}};
    RETURN FOUND;
END $$;
COMMENT ON FUNCTION {{.}}newer(text, bigint, text) IS
'Whether a state of that version is to be applied, and records it if so: it is the first for resource, or higher than the '
'recorded one. Of kind ''time'' an equal one is to be applied too, because two states can have one time; the unit is yours. One '
'of the other kind than the recorded one is to be applied. Null always is, and is not recorded. Holds the resource until the '
'transaction ends.';

CREATE FUNCTION {{.}}transition(entity text, from_state text, to_state text, OUT outcome text, OUT state text)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    made boolean;
BEGIN
    PERFORM {{.}}mind('entity', transition.entity), {{.}}mind('state to leave', from_state, true), {{.}}mind('state to enter', to_state);
    IF from_state = to_state COLLATE "C" THEN
        RAISE SQLSTATE 'WH003' USING MESSAGE = format('hookonce: a move from %L to itself', from_state);
    END IF;
    -- A row is made even for what was never seen and is not asked to move from there, so that there is one to
    -- lock. The second statement sees what was committed while the first waited.
    INSERT INTO {{.}}states AS s (entity, state, updated_at)
    VALUES (transition.entity, CASE WHEN from_state COLLATE "C" = '' THEN to_state ELSE '' END, {{.}}clock())
    ON CONFLICT (entity) DO UPDATE SET state = to_state, updated_at = excluded.updated_at
    WHERE s.state = from_state COLLATE "C";
    made := FOUND;
    SELECT s.state INTO state FROM {{.}}states s WHERE s.entity = transition.entity COLLATE "C";
    outcome := CASE WHEN transition.state <> to_state COLLATE "C" THEN 'impossible' WHEN made THEN 'moved' ELSE 'already' END;
END $$;
COMMENT ON FUNCTION {{.}}transition(text, text, text) IS
'Moves entity from one state to another if it is in the first, and returns the state that it is in now and the outcome: moved; '
'already, it was in the second; impossible, it is in neither. What was never moved is in the state ''''. Holds the entity until '
'the transaction ends.';

CREATE FUNCTION {{.}}enqueue(
    name text, payload bytea, source text, key text DEFAULT NULL, step text DEFAULT NULL, due timestamptz DEFAULT NULL
) RETURNS bigint LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    at     timestamptz := {{.}}clock();
    number bigint;
BEGIN
    PERFORM {{.}}mind('source', enqueue.source), {{.}}mind('name', enqueue.name), {{.}}mind('step', coalesce(enqueue.step, ''), true);
    IF enqueue.due NOT BETWEEN '0001-01-01 UTC' AND '9999-12-31 23:59:59.999999 UTC' THEN
        RAISE SQLSTATE 'WH003' USING MESSAGE = format('hookonce: the effect is due at %s, not in the years 1 to 9999', enqueue.due);
    ELSIF length(enqueue.payload) > 1048576 THEN
        RAISE SQLSTATE 'WH003' USING
            MESSAGE = format('hookonce: the payload has %s bytes, 1048576 can be stored', length(enqueue.payload));
    END IF;
    INSERT INTO {{.}}effects AS e (source, key, step, name, payload, due_at, enqueued_at, updated_at)
    VALUES (enqueue.source, nullif({{.}}normal_key(enqueue.key) COLLATE "C", ''), coalesce(nullif(enqueue.step, ''), enqueue.name), enqueue.name,
        coalesce(enqueue.payload, ''), coalesce(enqueue.due, at), at, at)
    ON CONFLICT (source, key, step) DO NOTHING
    RETURNING e.id INTO number;
    IF number IS NULL THEN
        RAISE SQLSTATE 'WH004' USING
            MESSAGE = format('hookonce: %s/%s has an effect with the step %L already', enqueue.source, {{.}}normal_key(enqueue.key),
                coalesce(nullif(enqueue.step, ''), enqueue.name)),
            HINT = 'Give each effect of an event a step of its own.';
    END IF;
    RETURN number;
END $$;
COMMENT ON FUNCTION {{.}}enqueue(text, bytea, text, text, text, timestamptz) IS
'Stores something to do after the commit, for a relay that knows name, and returns its number. (source, key) is the event that '
'asks for it; step (default: name) tells several effects of one event apart: a second one with the same step raises WH004. due: '
'not before then.';

CREATE FUNCTION {{.}}enqueue(
    name text, payload text, source text, key text DEFAULT NULL, step text DEFAULT NULL, due timestamptz DEFAULT NULL
) RETURNS bigint LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN {{.}}enqueue(enqueue.name, convert_to(enqueue.payload, 'UTF8'), enqueue.source, enqueue.key, enqueue.step, enqueue.due);
END $$;
COMMENT ON FUNCTION {{.}}enqueue(text, text, text, text, text, timestamptz) IS 'enqueue() with the payload as text.';
