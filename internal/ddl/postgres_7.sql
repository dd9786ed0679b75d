{{if .Yugabyte -}}
-- Not divided here: a partition can only be dropped under LOCK TABLE. Rows are deleted one by one, and the tables of what is
-- put aside elsewhere stay empty, so that all statements are the same.
CREATE TABLE {{.}}kept_bodies (LIKE {{.}}bodies INCLUDING INDEXES);
CREATE TABLE {{.}}kept_attempts (LIKE {{.}}attempts INCLUDING DEFAULTS INCLUDING INDEXES);
{{- else -}}
-- Bodies and attempts are divided by identifier, and so by time: a partition goes as a whole. The gateway makes
-- partitions ahead, like the default one, and drops them.
--
-- What is there already becomes the first partition. For that the server reads both tables once, while nothing
-- can be stored in them.
ALTER TABLE {{.}}bodies RENAME TO bodies_before;
ALTER INDEX {{.}}bodies_pkey RENAME TO bodies_before_pkey;
CREATE TABLE {{.}}bodies (LIKE {{.}}bodies_before) PARTITION BY RANGE (event_id);
ALTER TABLE {{.}}bodies ADD PRIMARY KEY (event_id);
-- What no partition is for. Its storage parameter, which keeps webhook-sized rows out of TOAST, is copied to every partition.
CREATE TABLE {{.}}bodies_default PARTITION OF {{.}}bodies DEFAULT WITH (toast_tuple_target = 8160);
-- What was still needed of a partition when it was dropped.
CREATE TABLE {{.}}kept_bodies (LIKE {{.}}bodies INCLUDING INDEXES) WITH (toast_tuple_target = 8160);

ALTER TABLE {{.}}attempts RENAME TO attempts_before;
ALTER INDEX {{.}}attempts_pkey RENAME TO attempts_before_pkey;
CREATE TABLE {{.}}attempts (LIKE {{.}}attempts_before INCLUDING DEFAULTS) PARTITION BY RANGE (event_id);
ALTER TABLE {{.}}attempts ADD PRIMARY KEY (event_id, destination, token);
CREATE TABLE {{.}}attempts_default PARTITION OF {{.}}attempts DEFAULT;
CREATE TABLE {{.}}kept_attempts (LIKE {{.}}attempts INCLUDING DEFAULTS INCLUDING INDEXES);

DO $$
DECLARE
    per_day  constant bigint := 86400000::bigint << 22;       -- identifiers of a day
    -- The first midnight, UTC, that is an hour ahead or more.
    midnight constant bigint := (((extract(epoch FROM now()) - 1577836800 + 3600) * 1000)::bigint << 22) / per_day * per_day + per_day;
    name     text;
    filled   boolean;
BEGIN
    FOREACH name IN ARRAY ARRAY['bodies', 'attempts'] LOOP
        EXECUTE format('SELECT EXISTS (SELECT FROM {{.}}%I)', name || '_before') INTO filled;
        IF NOT filled THEN
            EXECUTE format('DROP TABLE {{.}}%I', name || '_before');
            CONTINUE;
        END IF;
        -- Identifiers of a clock that was ahead.
        EXECUTE format('WITH late AS (DELETE FROM {{.}}%I WHERE event_id >= %s RETURNING *) INSERT INTO {{.}}%I SELECT * FROM late',
            name || '_before', midnight, 'kept_' || name);
        EXECUTE format('ALTER TABLE {{.}}%I ATTACH PARTITION {{.}}%I FOR VALUES FROM (MINVALUE) TO (%s)',
            name, name || '_before', midnight);
    END LOOP;
END $$;
{{- end}}
