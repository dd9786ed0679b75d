#!lua
-- Decides who owns the work under KEYS[1]: see hookonce.Claim.VerdictFor.
-- Arguments: the time now, the end of the lease (empty: no deadline), the event's type, its digest, whether to
-- pin the claim to it (1 or 0).
-- Returns 1 if the caller owns it, else 0; the digest that was stored before; the claim's fields.
local key, now, lease, kind, digest, pin = KEYS[1], unpack(ARGV)

local function answer(won, before)
  return {won, before, unpack(redis.call('HMGET', key, 'state', 'token', 'lease', 'type', 'digest', 'first', 'updated', 'error', 'pinned'))}
end

local state, before, ends, pinned = unpack(redis.call('HMGET', key, 'state', 'digest', 'lease', 'pinned'))
if not state then
  redis.call('HSET', key, 'state', 'processing', 'token', 1, 'lease', lease, 'type', kind, 'digest', digest, 'first', now, 'updated', now, 'pinned', pin)
  return answer(1, '')
end

local expired = state == 'processing' and ends ~= '' and tonumber(ends) <= tonumber(now)
if not (expired or state == 'failed' or state == 'dead') then
  return answer(0, before)
end
local bound = pinned and pinned ~= '0'
if bound and before ~= '' and digest ~= '' and before ~= digest then
  return answer(0, before)
end

local token = redis.call('HINCRBY', key, 'token', 1)
if pin == '1' and not bound then redis.call('HSET', key, 'pinned', token) end
redis.call('HSET', key, 'state', 'processing', 'lease', lease, 'updated', now)
if kind ~= '' then redis.call('HSET', key, 'type', kind) end
if digest ~= '' then redis.call('HSET', key, 'digest', digest) end
return answer(1, before)
