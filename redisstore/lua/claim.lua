#!lua
-- Decides who owns the work under KEYS[1]: see hookonce.Claimable.
-- Arguments: the time now, the end of the lease (empty: no deadline), the event's type, its digest.
-- Returns 1 if the caller owns it, else 0; the digest that was stored before; the claim's fields.
local key, now, lease, kind, digest = KEYS[1], unpack(ARGV)

local function answer(won, before)
  return {won, before, unpack(redis.call('HMGET', key, 'state', 'token', 'lease', 'type', 'digest', 'first', 'updated', 'error'))}
end

local state, before, ends = unpack(redis.call('HMGET', key, 'state', 'digest', 'lease'))
if not state then
  redis.call('HSET', key, 'state', 'processing', 'token', 1, 'lease', lease, 'type', kind, 'digest', digest, 'first', now, 'updated', now)
  return answer(1, '')
end

local expired = state == 'processing' and ends ~= '' and tonumber(ends) <= tonumber(now)
if not (expired or state == 'failed' or state == 'dead') then
  return answer(0, before)
end

redis.call('HINCRBY', key, 'token', 1)
redis.call('HSET', key, 'state', 'processing', 'lease', lease, 'updated', now)
if kind ~= '' then redis.call('HSET', key, 'type', kind) end
if digest ~= '' then redis.call('HSET', key, 'digest', digest) end
return answer(1, before)
