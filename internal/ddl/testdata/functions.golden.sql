-- decide(
    p_source text, p_key text, p_type text, p_digest bytea, p_state text, p_seconds double precision, p_wait interval,
    p_pin boolean
) RETURNS "hookonce".claim_answer LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    lock     bigint;
    patience timestamptz;                                      -- of all tries together
    at       timestamptz;
    lease    timestamptz;
    seen     "hookonce".claims;
    won      "hookonce".claims;
BEGIN
    PERFORM "hookonce".mind('source', p_source);
    p_key := "hookonce".normal_key(p_key);
    IF p_key COLLATE "C" = '' THEN
        RETURN "hookonce".answer(NULL, 'unkeyed', false);
    END IF;
    lock := "hookonce".key_lock(p_source, p_key);
    FOR tries IN 1..8 LOOP
        at := "hookonce".clock();
        lease := CASE WHEN p_state = 'processing' AND p_seconds <> 0 THEN at + make_interval(secs => p_seconds) END;
        SELECT * INTO seen FROM "hookonce".claims c WHERE c.source = p_source COLLATE "C" AND c.key = p_key COLLATE "C";
        IF NOT FOUND THEN
            INSERT INTO "hookonce".claims (source, key, state, token, lease_until, event_type, digest, first_seen, updated_at, pinned)
            SELECT p_source, p_key, p_state, 1, lease, coalesce(p_type, ''), nullif(p_digest, ''), at, at, CASE WHEN p_pin THEN 1 ELSE 0 END
            WHERE pg_try_advisory_xact_lock(lock)
            ON CONFLICT (source, key) DO NOTHING
            RETURNING * INTO won;
        ELSIF seen.state = 'done' THEN
            PERFORM "hookonce".replicated();
            RETURN "hookonce".answer(seen, 'duplicate', "hookonce".differ(seen.digest, p_digest));
        ELSIF (seen.state IN ('failed', 'dead') OR (seen.state = 'processing' AND seen.lease_until <= at)) IS NOT TRUE THEN
            RETURN "hookonce".answer(seen, 'busy', "hookonce".differ(seen.digest, p_digest));
        ELSIF NOT (seen.pinned = 0 OR coalesce(seen.digest = nullif(p_digest, ''), true)) THEN
            RETURN "hookonce".answer(seen, 'pinned', true);
        ELSIF pg_try_advisory_xact_lock(lock) THEN
            UPDATE "hookonce".claims c SET state = p_state, token = c.token + 1, lease_until = lease, updated_at = at,
	event_type = coalesce(nullif(p_type, ''), c.event_type), digest = coalesce(nullif(p_digest, ''), c.digest),
	pinned = CASE WHEN p_pin AND c.pinned = 0 THEN c.token + 1 ELSE c.pinned END
            WHERE c.source = p_source COLLATE "C" AND c.key = p_key COLLATE "C" AND c.token = seen.token
                AND (c.state IN ('failed', 'dead') OR (c.state = 'processing' AND c.lease_until <= at)) AND (c.pinned = 0 OR coalesce(c.digest = nullif(p_digest, ''), true))
            RETURNING * INTO won;
        END IF;
        IF won.token IS NOT NULL THEN
            RETURN "hookonce".answer(won, 'accepted', "hookonce".differ(seen.digest, p_digest));
        END IF;
        patience := coalesce(patience, "hookonce".patience(p_wait));
        EXIT WHEN NOT "hookonce".await(lock, patience);
    END LOOP;
    RETURN "hookonce".answer(NULL, 'busy', false);

-- failed(
    source text, key text, error text DEFAULT '', dead boolean DEFAULT false, token bigint DEFAULT NULL,
    event_type text DEFAULT '', digest bytea DEFAULT NULL, began timestamptz DEFAULT NULL, pinned boolean DEFAULT false
) RETURNS boolean LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    named text := "hookonce".normal_key(failed.key);
    at    timestamptz;
BEGIN
    PERFORM "hookonce".mind('source', failed.source);
    IF named COLLATE "C" = '' THEN
        RETURN false;
    ELSIF NOT "hookonce".await("hookonce".key_lock(failed.source, named), "hookonce".patience(NULL)) THEN
        PERFORM "hookonce".busy(failed.source, failed.key);
    END IF;
    at := "hookonce".clock();
    INSERT INTO "hookonce".claims AS c (source, key, state, token, event_type, digest, first_seen, updated_at, last_error, pinned)
    VALUES (failed.source, named, CASE WHEN failed.dead THEN 'dead' ELSE 'failed' END, coalesce(failed.token, 1),
        coalesce(failed.event_type, ''), nullif(failed.digest, ''), CASE WHEN isfinite(failed.began) THEN failed.began ELSE at END, at, "hookonce".cut(failed.error),
        CASE WHEN failed.pinned THEN coalesce(failed.token, 1) ELSE 0 END)
    ON CONFLICT (source, key) DO UPDATE SET
        state = excluded.state, token = coalesce(failed.token, c.token + 1), lease_until = NULL,
        event_type = coalesce(nullif(excluded.event_type, ''), c.event_type), digest = coalesce(excluded.digest, c.digest),
        updated_at = excluded.updated_at, last_error = excluded.last_error,
        pinned = CASE WHEN failed.pinned AND c.pinned = 0 THEN coalesce(failed.token, c.token + 1) ELSE c.pinned END
    WHERE (c.pinned = 0 OR coalesce(c.digest = excluded.digest, true)) AND CASE
        WHEN failed.token > c.token OR (failed.token IS NULL AND c.state <> 'dead') THEN (c.state IN ('failed', 'dead') OR (c.state = 'processing' AND c.lease_until <= at))
        WHEN failed.token = c.token OR failed.token IS NULL THEN (c.state = 'failed' OR (c.state = 'dead' AND excluded.state = 'dead'))
    END;
    RETURN FOUND;

-- change(
    p_source text, p_key text, p_token bigint, p_state text, p_seconds double precision, p_error text, p_repeats text[],
    p_pin boolean DEFAULT NULL
) RETURNS "hookonce".claims LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    at     timestamptz;
    stored "hookonce".claims;
BEGIN
    PERFORM "hookonce".mind('source', p_source);
    p_key := "hookonce".normal_key(p_key);
    IF NOT "hookonce".await("hookonce".key_lock(p_source, p_key), "hookonce".patience(NULL)) THEN
        PERFORM "hookonce".busy(p_source, p_key);
    END IF;
    at := "hookonce".clock();
    UPDATE "hookonce".claims c SET state = p_state, lease_until = at + make_interval(secs => p_seconds),
        last_error = coalesce(p_error, c.last_error), updated_at = at,
        pinned = CASE WHEN p_pin IS NULL THEN c.pinned ELSE CASE WHEN c.pinned NOT IN (0, c.token) THEN c.pinned WHEN p_pin THEN c.token ELSE 0 END END
    WHERE c.source = p_source COLLATE "C" AND c.key = p_key COLLATE "C" AND c.token = p_token AND c.state = 'processing'
    RETURNING * INTO stored;
    IF FOUND THEN
        RETURN stored;
    END IF;
    SELECT * INTO stored FROM "hookonce".claims c WHERE c.source = p_source COLLATE "C" AND c.key = p_key COLLATE "C";
    IF NOT FOUND THEN
        RAISE SQLSTATE 'WH002' USING MESSAGE = format('hookonce: there is no claim %s/%s', p_source, p_key);
    ELSIF stored.token IS DISTINCT FROM p_token OR NOT stored.state = ANY (p_repeats) THEN
        RAISE SQLSTATE 'WH001' USING
            MESSAGE = format('hookonce: %s/%s is %s under token %s, not %s', p_source, p_key, stored.state, stored.token, p_token),
            HINT = 'The lease ran out and somebody else took over: this work is not the caller''s any more.';
    END IF;
    PERFORM "hookonce".replicated();
    RETURN stored;

-- newer(resource text, version bigint, kind text DEFAULT 'version') RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
    IF newer.kind IS NULL OR newer.kind COLLATE "C" NOT IN ('version', 'time') THEN
        RAISE SQLSTATE 'WH003' USING MESSAGE = format('hookonce: there are no ranks of kind %L; use ''version'' or ''time''', newer.kind);
    END IF;
    IF newer.version IS NULL THEN
        RETURN true;
    END IF;
    PERFORM "hookonce".mind('resource', newer.resource);
    INSERT INTO "hookonce".versions AS v (resource, version, kind, updated_at)
    VALUES (newer.resource, newer.version, newer.kind, "hookonce".clock())
    ON CONFLICT (resource) DO UPDATE SET version = excluded.version, kind = excluded.kind, updated_at = excluded.updated_at
    WHERE v.kind <> excluded.kind OR v.version < excluded.version OR v.version = excluded.version AND excluded.kind = 'time';
    RETURN FOUND;

