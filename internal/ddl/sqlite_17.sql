-- An ordering group is of one source: two of them can give their objects the same names. What is open gets the name that programs
-- of this version give, source/resource, and its groups are looked at once.
UPDATE {{.}}deliveries SET resource = (SELECT e.source FROM {{.}}events e WHERE e.id = event_id) || '/' || resource WHERE resource IS NOT NULL;
DELETE FROM {{.}}lanes;
INSERT INTO {{.}}lanes (destination, resource, due_at, event_id)
SELECT destination, resource, min(due_at), max(CASE WHEN state = 'processing' THEN event_id END)
FROM {{.}}deliveries WHERE resource IS NOT NULL AND state <> 'dead'
GROUP BY destination, resource;

-- The newest ranks are named likewise from now on. What older programs recorded stays as it is until its time is over: the event
-- says of which source it is.
ALTER TABLE {{.}}newest ADD COLUMN rank_kind TEXT;
