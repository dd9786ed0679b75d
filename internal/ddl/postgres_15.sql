-- Events that a provider lists and that were not on record when they were looked up. One that is on record by now is over, whoever
-- brought it, and so is one that has expired or was dismissed. Entry is the event's key or, of one that has none, what the
-- provider calls it. The row without either counts those that there was no room for.
CREATE TABLE {{.}}reconcile_missing (
    source       text COLLATE "C" NOT NULL,
    keyed        boolean NOT NULL,
    entry        text COLLATE "C" NOT NULL,
    event_type   text NOT NULL,
    happened_at  timestamptz,                                 -- as the list says
    found_at     timestamptz NOT NULL,
    asked_at     timestamptz,                                 -- when the provider was first asked to send it again
    reason       text NOT NULL,                               -- why it was refused, or could not be recovered
    expires_at   timestamptz NOT NULL,                        -- when neither the list nor the journal can tell of it any more
    dismissed_at timestamptz,                                 -- somebody looked at it; kept, so that it is not found again
    n            bigint NOT NULL DEFAULT 1,                   -- of the row without an entry: how many it stands for
    PRIMARY KEY (source, keyed, entry)
);
