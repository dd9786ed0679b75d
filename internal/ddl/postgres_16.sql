-- Of a rank what it counts, version or time: two of different kinds cannot be compared. Null: there is no rank, or an older program
-- stored the event.
ALTER TABLE {{.}}events ADD COLUMN rank_kind text COLLATE "C";
