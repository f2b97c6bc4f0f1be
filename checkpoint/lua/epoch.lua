-- Hands out the next epoch: one more than any that was handed out or saved, also when the counter was lost or is nonsense.
-- ARGV: 1 version.
local _, map = record()
if newer(map, ARGV[1]) then return {'newer', map.v} end
return {'ok', raise(map)}
