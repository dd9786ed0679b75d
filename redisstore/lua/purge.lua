#!lua flags=allow-oom
-- Deletes the claim if it is done and was last updated from the first time that the arguments give and before the
-- second. If there is a third argument, which is not empty, it may have failed as well.
local state, updated = unpack(redis.call('HMGET', KEYS[1], 'state', 'updated'))
local over = state == 'done' or (ARGV[3] ~= '' and (state == 'failed' or state == 'dead'))
if not over or tonumber(updated) < tonumber(ARGV[1]) or tonumber(updated) >= tonumber(ARGV[2]) then return 0 end
return redis.call('UNLINK', KEYS[1])
