-- When copies of an event came, and what they were. Of each kind the last row that there is room for
-- sums up what comes later.
CREATE TABLE {{.}}sightings (
    event_id bigint NOT NULL,
    kind     text COLLATE "C" NOT NULL,                       -- duplicate, conflict, redriven
    n        integer NOT NULL,                                -- from 1
    first_at timestamptz NOT NULL,
    last_at  timestamptz NOT NULL,
    copies   bigint NOT NULL,
    PRIMARY KEY (event_id, kind, n)
);
CREATE INDEX sightings_rare ON {{.}}sightings (kind, event_id) WHERE kind <> 'duplicate';

-- Destinations that nothing is delivered to, by the decision of an operator.
CREATE TABLE {{.}}pauses (
    destination text COLLATE "C" PRIMARY KEY,
    paused_at   timestamptz NOT NULL,
    paused_by   text NOT NULL,
    reason      text NOT NULL
);

-- What operators did. A replay counts on while it goes on.
CREATE TABLE {{.}}audits (
    id       bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    at       timestamptz NOT NULL,
    done_by  text NOT NULL,
    reason   text NOT NULL,
    action   text COLLATE "C" NOT NULL,                       -- replay, pause, resume
    filter   text COLLATE "C" NOT NULL,                       -- of a replay, in JSON; else the destination
    affected bigint NOT NULL                                  -- deliveries that a replay made due
);
