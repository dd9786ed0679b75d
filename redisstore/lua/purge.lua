#!lua flags=allow-oom
-- Deletes the claim if it is done and was last updated before the time that the argument gives.
local state, updated = unpack(redis.call('HMGET', KEYS[1], 'state', 'updated'))
if state ~= 'done' or tonumber(updated) >= tonumber(ARGV[1]) then return 0 end
return redis.call('UNLINK', KEYS[1])
