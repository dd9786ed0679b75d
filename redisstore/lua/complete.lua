-- Arguments: how long to keep the claim, in milliseconds (0: until it is purged), and, if there is a
-- response, its status, header and body.
if state == 'done' then return {'ok'} end
if state ~= 'processing' then return stale end
redis.call('HSET', key, 'state', 'done', 'lease', '', 'updated', now)
if ARGV[4] then redis.call('HSET', key, 'status', ARGV[4], 'header', ARGV[5], 'body', ARGV[6]) end
if ARGV[3] ~= '0' then redis.call('PEXPIRE', key, ARGV[3]) end
return {'ok'}
