#!lua flags=no-writes
-- Returns the fields that the arguments name.
return redis.call('HMGET', KEYS[1], unpack(ARGV))
