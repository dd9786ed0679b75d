-- purge() leaves a gateway's claims to the gateway, fail() takes a time in milliseconds, and claim() works where
-- standard_conforming_strings is off.
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
            'claimed_alone', 'forget'])
    LOOP
        EXECUTE format('DROP FUNCTION %s', f);
    END LOOP;
    IF to_regtype('{{.}}claim_answer') IS NOT NULL THEN
        DROP TYPE {{.}}claim_answer;
    END IF;
END $$;

{{template "postgres_functions.sql" .}}
{{- end}}
