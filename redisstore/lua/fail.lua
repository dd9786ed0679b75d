-- Arguments: the state to leave the claim in, the error's text, whether it stays pinned (1 or 0), and, if it is
-- to be forgotten, when it was first seen: whoever begins anew after that has the same token. A failure takes
-- back only what its own attempt pinned.
if state == 'failed' or state == 'dead' then return {'ok'} end
if state ~= 'processing' then return stale end
if ARGV[6] then
  if redis.call('HGET', key, 'first') ~= ARGV[6] then return stale end
  redis.call('UNLINK', key)
  return {'ok'}
end
local pinned = redis.call('HGET', key, 'pinned') or '0'
if pinned == '0' or pinned == token then pinned = ARGV[5] == '1' and token or '0' end
redis.call('HSET', key, 'state', ARGV[3], 'lease', '', 'updated', now, 'error', ARGV[4], 'pinned', pinned)
return {'ok'}
