-- Argument: the new end of the lease. Returns the claim's fields after 'ok'.
if state ~= 'processing' then return stale end
redis.call('HSET', key, 'lease', ARGV[3], 'updated', now)
return {'ok', unpack(redis.call('HMGET', key, 'state', 'token', 'lease', 'type', 'digest', 'first', 'updated', 'error', 'pinned'))}
