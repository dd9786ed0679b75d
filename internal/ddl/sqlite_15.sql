-- Events that a provider lists and that were not on record when they were looked up. One that is on record by now is over, whoever
-- brought it, and so is one that has expired or was dismissed. Entry is the event's key or, of one that has none, what the
-- provider calls it. The row without either counts those that there was no room for. Times are microseconds since 1970.
CREATE TABLE {{.}}reconcile_missing (
    source       TEXT NOT NULL,
    keyed        INTEGER NOT NULL,
    entry        TEXT NOT NULL,
    event_type   TEXT NOT NULL,
    happened_at  INTEGER,                                     -- as the list says
    found_at     INTEGER NOT NULL,
    asked_at     INTEGER,                                     -- when the provider was first asked to send it again
    reason       TEXT NOT NULL,                               -- why it was refused, or could not be recovered
    expires_at   INTEGER NOT NULL,                            -- when neither the list nor the journal can tell of it any more
    dismissed_at INTEGER,                                     -- somebody looked at it; kept, so that it is not found again
    n            INTEGER NOT NULL DEFAULT 1,                  -- of the row without an entry: how many it stands for
    PRIMARY KEY (source, keyed, entry)
) WITHOUT ROWID;
