-- An ordering group is of one source: two of them can give their objects the same names. What is open gets the name that programs
-- of this version give, source/resource, and its groups are looked at once. The tables are locked in a mode that
-- row locks do not come beside: whoever holds one would wait for this, and this for him. Most statements use them in this order; work
-- that is taken uses the second first, so that the server may end one of both (40P01), which is tried again.
{{- if not .Yugabyte}}
LOCK TABLE {{.}}deliveries, {{.}}lanes IN EXCLUSIVE MODE;
{{- end}}
UPDATE {{.}}deliveries d SET resource = e.source || '/' || d.resource FROM {{.}}events e WHERE e.id = d.event_id AND d.resource IS NOT NULL;
DELETE FROM {{.}}lanes;
INSERT INTO {{.}}lanes (destination, resource, due_at, event_id)
SELECT destination, resource, min(due_at), max(event_id) FILTER (WHERE state = 'processing')
FROM {{.}}deliveries WHERE resource IS NOT NULL AND state <> 'dead'
GROUP BY destination, resource;

-- The newest ranks are named likewise from now on. What older programs recorded stays as it is until its time is over: the event
-- says of which source it is.
ALTER TABLE {{.}}newest ADD COLUMN rank_kind text COLLATE "C";
