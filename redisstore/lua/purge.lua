#!lua flags=allow-oom
-- Deletes the claim if it was last updated from the first time that the arguments give and before the second, and is in
-- one of the states that follow.
local state, updated = unpack(redis.call('HMGET', KEYS[1], 'state', 'updated'))
local over = state and (state == ARGV[3] or state == ARGV[4])
if not over or tonumber(updated) < tonumber(ARGV[1]) or tonumber(updated) >= tonumber(ARGV[2]) then return 0 end
return redis.call('UNLINK', KEYS[1])
