-- Takes the lease, or finds that it is ours already (an answer that got lost). KEYS: 1 leader. ARGV: 1 token, 2 ttl in ms.
-- Returns 0 when it is ours, else how many milliseconds the other's lease still has.
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then
  local left = redis.call('PTTL', KEYS[1])
  -- A lease without an end was not written by us and would keep everyone out for ever.
  if left < 0 then
    redis.call('PEXPIRE', KEYS[1], ARGV[2])
    left = tonumber(ARGV[2])
  end
  return math.max(left, 1)
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 0
