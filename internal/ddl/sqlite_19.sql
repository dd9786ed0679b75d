-- Since when a delivery waits that a replay began again when it was dead or done: since it was due then, in microseconds since
-- 1970. Nothing else changes it. NULL: since its event was accepted.
ALTER TABLE {{.}}deliveries ADD COLUMN waits_since INTEGER;
