-- Gives the lease back when it is still ours. KEYS: 1 leader. ARGV: 1 token.
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0
