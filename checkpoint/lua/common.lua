-- Shared by the scripts. KEYS: 1 checkpoint, 2 epoch, 3 history; all of one source, so of one hash slot.

-- digits returns s without leading zeros, '0' when it is not a number. Numbers are kept and compared as text, since Lua's
-- lose exactness beyond 2^53.
local function digits(s)
  if type(s) ~= 'string' or not string.match(s, '^%d+$') then return '0' end
  local n = string.gsub(s, '^0+', '')
  if n == '' then return '0' end
  return n
end

local function less(a, b)
  if #a ~= #b then return #a < #b end
  return a < b
end

local function kind(key)
  local t = redis.call('TYPE', key)
  if type(t) == 'table' then t = t.ok end
  return t
end

-- clear removes a key of a type that is not ours: it would make every command fail for ever.
local function clear(key, wanted)
  local k = kind(key)
  if k ~= 'none' and k ~= wanted then redis.call('DEL', key) end
end

-- record returns the checkpoint's fields, flat and as a map; both empty when there is none.
local function record()
  if kind(KEYS[1]) ~= 'hash' then return {}, {} end
  local flat = redis.call('HGETALL', KEYS[1])
  local map = {}
  for i = 1, #flat, 2 do map[flat[i]] = flat[i + 1] end
  return flat, map
end

-- newer reports whether the record's format is higher than the caller's.
local function newer(map, version)
  return less(digits(version), digits(map.v))
end

-- current returns the highest epoch that was handed out or saved.
local function current(map)
  local epoch = '0'
  if kind(KEYS[2]) == 'string' then epoch = digits(redis.call('GET', KEYS[2])) end
  local saved = digits(map.epoch)
  if less(epoch, saved) then return saved end
  return epoch
end

-- raise takes the next epoch.
local function raise(map)
  local epoch = current(map)
  clear(KEYS[2], 'string')
  redis.call('SET', KEYS[2], epoch)
  redis.call('INCR', KEYS[2])
  return redis.call('GET', KEYS[2])
end

local function write(flat)
  redis.call('DEL', KEYS[1])
  if #flat > 0 then redis.call('HSET', KEYS[1], unpack(flat)) end
end

-- remember adds a line to the history. The fields of the record before and after stand in it as old.* and new.*.
local function remember(cap, entry, old, new)
  clear(KEYS[3], 'stream')
  for i = 1, #old, 2 do
    entry[#entry + 1] = 'old.' .. old[i]
    entry[#entry + 1] = old[i + 1]
  end
  for i = 1, #new, 2 do
    entry[#entry + 1] = 'new.' .. new[i]
    entry[#entry + 1] = new[i + 1]
  end
  return redis.call('XADD', KEYS[3], 'MAXLEN', cap, '*', unpack(entry))
end
