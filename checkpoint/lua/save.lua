-- Saves a checkpoint unless its writer has been replaced.
-- ARGV: 1 version, 2 epoch, 3 seq, 4 by, 5 note, 6 saved_at, 7 cap of the history, then field, value, ...
local new = {}
for i = 8, #ARGV do new[#new + 1] = ARGV[i] end
local version, mine, seq, by, note = ARGV[1], digits(ARGV[2]), digits(ARGV[3]), ARGV[4], ARGV[5]

local head = {}
if kind(KEYS[1]) == 'hash' then
  local v = redis.call('HMGET', KEYS[1], 'v', 'epoch', 'seq', 'by')
  head = {v = v[1], epoch = v[2], seq = v[3], by = v[4]}
end
if newer(head, version) then return {'newer', head.v} end

local highest = current(head)
if less(mine, highest) then return {'fenced', highest, head.by or ''} end
local first = mine ~= digits(head.epoch)
if not first then
  -- Two relays may hold one epoch when a failover of Redis lost the counter's last step. The first to save keeps it.
  if head.by ~= by then return {'fenced', highest, head.by or ''} end
  -- A request that was stuck on its way (a paused Redis, a client that timed out) must not overwrite a later one.
  if not less(digits(head.seq), seq) then return {'late'} end
end

-- The counter is put back when it was lost, so that the next leader gets a higher one.
if kind(KEYS[2]) ~= 'string' or digits(redis.call('GET', KEYS[2])) ~= mine then
  clear(KEYS[2], 'string')
  redis.call('SET', KEYS[2], mine)
end

-- The history gets the first save of an epoch and what is told to be worth a line, not each second's save.
-- Without the offsets: they can be long, and only an operator's change can be undone.
local function brief(flat)
  local kept = {}
  for i = 1, #flat, 2 do
    if flat[i] ~= 'offsets' then
      kept[#kept + 1] = flat[i]
      kept[#kept + 1] = flat[i + 1]
    end
  end
  return kept
end

if first or note ~= '' then
  local old = record()
  local event = 'leader'
  if note ~= '' then event = 'recovery' end
  remember(ARGV[7], {'event', event, 'at', ARGV[6], 'by', by, 'epoch', mine, 'reason', note}, brief(old), brief(new))
end
if first then write(new) else redis.call('HSET', KEYS[1], unpack(new)) end
return {'ok'}
