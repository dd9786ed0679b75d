-- Since when a delivery waits that a replay began again when it was dead or done: since it was due then. Nothing else changes
-- it. NULL: since its event was accepted.
ALTER TABLE {{.}}deliveries ADD COLUMN waits_since timestamptz;

-- The functions wait for a standby with what they say is done.
{{if not .Yugabyte}}
-- The functions of older versions go, and those of this version come.
DO $$
DECLARE
    f regprocedure;
BEGIN
    IF EXISTS (SELECT FROM pg_catalog.pg_trigger WHERE tgrelid = '{{.}}claims'::regclass AND tgname = 'claimed_alone') THEN
        DROP TRIGGER claimed_alone ON {{.}}claims;
    END IF;
    FOR f IN
        SELECT oid::regprocedure FROM pg_proc
        WHERE pronamespace = '{{.Name}}'::regnamespace AND proname = ANY (ARRAY[
            'clock', 'well_formed', 'normal_key', 'join_key', 'effect_key', 'digest', 'mind', 'answer', 'differ', 'key_lock',
            'await', 'patience', 'decide', 'busy', 'claim_detail', 'claim', 'failed', 'cut', 'lease', 'change', 'complete',
            'fail', 'extend', 'lookup', 'purge', 'once', 'newer', 'transition', 'enqueue', 'alone',
            'claimed_alone', 'forget', 'replicated'])
    LOOP
        EXECUTE format('DROP FUNCTION %s', f);
    END LOOP;
    IF to_regtype('{{.}}claim_answer') IS NOT NULL THEN
        DROP TYPE {{.}}claim_answer;
    END IF;
END $$;

{{template "postgres_functions.sql" .}}
{{- end}}
