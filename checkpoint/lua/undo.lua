-- Puts back the checkpoint as it stood before the operator's last change (an undo is one too), under a new epoch.
-- ARGV: 1 version, 2 user, 3 host, 4 reason, 5 at, 6 by, 7 cap of the history.
local current_fields, map = record()
if newer(map, ARGV[1]) then return {'newer', map.v} end
if kind(KEYS[3]) ~= 'stream' then return {'nothing'} end

local found = nil
for _, entry in ipairs(redis.call('XREVRANGE', KEYS[3], '+', '-')) do
  local fields = {}
  for i = 1, #entry[2], 2 do
    if entry[2][i] == 'event' then fields.event = entry[2][i + 1] end
  end
  if fields.event == 'set' or fields.event == 'reset' or fields.event == 'undo' then
    found = entry
    break
  end
end
if not found then return {'nothing'} end

local restored, before = {}, {}
for i = 1, #found[2], 2 do
  local name = found[2][i]
  if string.sub(name, 1, 4) == 'old.' then
    local field = string.sub(name, 5)
    before[field] = found[2][i + 1]
    if field ~= 'epoch' and field ~= 'by' then
      restored[#restored + 1] = field
      restored[#restored + 1] = found[2][i + 1]
    end
  end
end
if newer(before, ARGV[1]) then return {'newer', before.v} end
local epoch = raise(map)
if #restored > 0 then
  restored[#restored + 1] = 'epoch'
  restored[#restored + 1] = epoch
  restored[#restored + 1] = 'by'
  restored[#restored + 1] = ARGV[6]
end
clear(KEYS[1], 'hash')
write(restored)
local id = remember(ARGV[7], {'event', 'undo', 'at', ARGV[5], 'by', ARGV[6], 'epoch', epoch,
  'user', ARGV[2], 'host', ARGV[3], 'reason', ARGV[4]}, current_fields, restored)
return {'ok', id}
