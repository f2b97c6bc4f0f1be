-- An operator's change: writes or removes the checkpoint under a new epoch, which fences off a running relay.
-- ARGV: 1 version, 2 event, 3 user, 4 host, 5 reason, 6 at, 7 by, 8 cap of the history, then field, value, ... without epoch;
-- no fields: the checkpoint is removed.
local old, map = record()
if newer(map, ARGV[1]) then return {'newer', map.v} end
local epoch = raise(map)
local new = {}
for i = 9, #ARGV do new[#new + 1] = ARGV[i] end
if #new > 0 then
  new[#new + 1] = 'epoch'
  new[#new + 1] = epoch
end
clear(KEYS[1], 'hash')
write(new)
local id = remember(ARGV[8], {'event', ARGV[2], 'at', ARGV[6], 'by', ARGV[7], 'epoch', epoch,
  'user', ARGV[3], 'host', ARGV[4], 'reason', ARGV[5]}, old, new)
return {'ok', id}
