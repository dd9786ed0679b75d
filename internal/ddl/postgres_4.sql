-- What destinations answered where the sender waits for it: its copies get the same. Kept as long as bodies.
CREATE TABLE {{.}}answers (
    event_id    bigint NOT NULL,
    destination text COLLATE "C" NOT NULL,
    status      integer NOT NULL,
    header      bytea NOT NULL,                               -- HTTP/1 field lines
    body        bytea NOT NULL,
    PRIMARY KEY (event_id, destination)
);
