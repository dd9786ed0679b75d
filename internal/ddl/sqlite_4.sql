-- What destinations answered where the sender waits for it: its copies get the same. Kept as long as bodies.
CREATE TABLE {{.}}answers (
    event_id    INTEGER NOT NULL,
    destination TEXT NOT NULL,
    status      INTEGER NOT NULL,
    header      BLOB NOT NULL,                                -- HTTP/1 field lines
    body        BLOB NOT NULL,
    PRIMARY KEY (event_id, destination)
);
