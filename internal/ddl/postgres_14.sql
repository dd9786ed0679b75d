-- The maps of the cells that this database belongs with, by their numbers without a gap. Nothing if there are no cells.
CREATE TABLE {{.}}cell_maps (
    number  bigint PRIMARY KEY,
    content text NOT NULL,                                    -- as it was introduced, byte for byte
    since   timestamptz NOT NULL                              -- when it was stored here
);

-- The number of the newest map, and the name of the cell that this database is, in one row. Whoever accepts events under a map holds the row until the commit (FOR SHARE),
-- so that no map is newer before those are visible that were accepted under the one before.
CREATE TABLE {{.}}cell_fence (
    one    boolean PRIMARY KEY DEFAULT true CHECK (one),
    number bigint NOT NULL,
    cell   text COLLATE "C" NOT NULL                          -- as of the first map; it never changes
){{.With "fillfactor = 10"}};

-- Since when a cell is known to accept nothing under a map below a number.
CREATE TABLE {{.}}cell_confirmations (
    cell   text COLLATE "C" NOT NULL,
    number bigint NOT NULL,
    at     timestamptz NOT NULL,
    PRIMARY KEY (cell, number)
);
