-- The tables of the shop. Those of hookonce come from `hookonce migrate`. None of these has a unique index that would
-- hide an effect that happened twice.
CREATE TABLE payments (
    source   text   NOT NULL,
    event_id text   NOT NULL,
    payment  text   NOT NULL,
    cents    bigint NOT NULL
);
CREATE TABLE states (
    payment  text PRIMARY KEY,
    status   text NOT NULL,
    event_id text NOT NULL
);
