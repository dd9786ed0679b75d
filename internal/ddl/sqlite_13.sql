-- Whether an event was stored from the provider's list: then it has no digest until the first copy that a webhook brings
-- supplies it. Null: a webhook brought it.
ALTER TABLE {{.}}events ADD COLUMN listed INTEGER;

-- How far each source was compared with what its provider lists, who is at it, and what came of the last run. Times are
-- microseconds since 1970.
CREATE TABLE {{.}}reconcile_marks (
    source      TEXT PRIMARY KEY,
    through     INTEGER,                                      -- of the provider's time; null: nothing was compared
    token       INTEGER NOT NULL,                             -- how often it was taken, and the fence
    holder      TEXT NOT NULL,                                -- who has it; empty: nobody
    lease_until INTEGER,
    ended_at    INTEGER,                                      -- of the last run that ended
    listed      INTEGER NOT NULL DEFAULT 0,
    missing     INTEGER NOT NULL DEFAULT 0,
    recovered   INTEGER NOT NULL DEFAULT 0,
    error       TEXT NOT NULL DEFAULT ''                      -- of a bounded size; empty: the run went through
) WITHOUT ROWID;
