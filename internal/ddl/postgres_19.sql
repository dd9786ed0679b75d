-- Since when a delivery waits that a replay began again when it was dead or done: since it was due then. Nothing else changes
-- it. NULL: since its event was accepted.
ALTER TABLE {{.}}deliveries ADD COLUMN waits_since timestamptz;
