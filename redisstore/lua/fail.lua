-- Arguments: the state to leave the claim in, the error's text.
if state == 'failed' or state == 'dead' then return {'ok'} end
if state ~= 'processing' then return stale end
redis.call('HSET', key, 'state', ARGV[3], 'lease', '', 'updated', now, 'error', ARGV[4])
return {'ok'}
