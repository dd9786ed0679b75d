#!lua flags=allow-oom
-- The beginning that complete, fail and extend share. What has happened must be recorded even when the
-- server's memory is full: hence the flag.
-- Arguments: the caller's token, the time now, and those of the script that follows.
-- Returns 'ok', or why nothing was changed: 'missing', or 'stale' with the stored state and token.
local key, token, now = KEYS[1], ARGV[1], ARGV[2]
local state, current = unpack(redis.call('HMGET', key, 'state', 'token'))
if not state then return {'missing'} end
local stale = {'stale', state, current}
if current ~= token then return stale end
