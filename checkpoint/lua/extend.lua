-- Extends the lease when it is still ours. A lease that is gone (Redis lost its data) is taken again: nobody else has it.
-- KEYS: 1 leader. ARGV: 1 token, 2 ttl in ms. Returns 1 when it is ours, 0 when it is someone else's.
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
