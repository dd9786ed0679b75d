-- Whether an event was stored from the provider's list: then it has no digest until the first copy that a webhook brings
-- supplies it. Null: a webhook brought it.
ALTER TABLE {{.}}events ADD COLUMN listed boolean;

-- How far each source was compared with what its provider lists, who is at it, and what came of the last run.
CREATE TABLE {{.}}reconcile_marks (
    source      text COLLATE "C" PRIMARY KEY,
    through     timestamptz,                                  -- of the provider's time; null: nothing was compared
    token       bigint NOT NULL,                              -- how often it was taken, and the fence
    holder      text NOT NULL,                                -- who has it; empty: nobody
    lease_until timestamptz,
    ended_at    timestamptz,                                  -- of the last run that ended
    listed      bigint NOT NULL DEFAULT 0,
    missing     bigint NOT NULL DEFAULT 0,
    recovered   bigint NOT NULL DEFAULT 0,
    error       text NOT NULL DEFAULT ''                      -- of a bounded size; empty: the run went through
){{.With "fillfactor = 70"}};
