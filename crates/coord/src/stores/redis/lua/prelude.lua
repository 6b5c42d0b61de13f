-- What every script begins with: keys, the clock, the server's account of itself, and cells.
-- Lua's numbers are doubles, exact up to 2^53; a record with a larger one counts as unreadable.
local META, HISTORY, RECORDS, BORN = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local FREE, HELD, NONCES = KEYS[5], KEYS[6], KEYS[7]
local LETTER, CHANNEL, RUN, IN_CLUSTER = ARGV[1], ARGV[2], ARGV[3], ARGV[4] == '1'
local clock = redis.call('TIME')
local MICROS = tonumber(clock[1]) * 1000000 + tonumber(clock[2])
local TIME = math.floor(MICROS / 1000)
local REPLICATION = redis.call('INFO', 'replication')
if not string.find(REPLICATION, 'role:master', 1, true) then
  return redis.error_reply('READONLY this server is a replica')
end
-- The history: a restart, a promotion and a move of the hash slot give it another name.
local epoch = IN_CLUSTER and string.match(redis.call('CLUSTER', 'INFO'), 'cluster_my_epoch:(%d+)') or ''
local ID = RUN .. ':' .. string.match(REPLICATION, 'master_replid:(%x*)') .. ':' .. epoch

local function int(number)
  return string.format('%.0f', number)
end

local function decode(text)
  local fine, record = pcall(cjson.decode, text)
  if not fine or type(record) ~= 'table' then return nil end
  for _, name in ipairs({'version', 'token', 'floor', 'horizon', 'renewed', 'expires'}) do
    local value = record[name]
    if name == 'expires' and (value == nil or value == cjson.null) then value = 0 end
    if type(value) ~= 'number' or value < 0 or value > 9007199254740991 or value % 1 ~= 0 then return nil end
    record[name] = value
  end
  if record.nonce == cjson.null then record.nonce = nil end
  return record.version > 0 and record or nil
end

-- The version, the nonce and the expiry of a slot.
local function cell(name)
  local text = redis.call('HGET', RECORDS, name)
  if not text or text == '' then return 0, '', 0 end
  local record = decode(text)
  -- Stands in for the version of a record that cannot be read, so that it can be replaced.
  if not record then return tonumber(string.sub(redis.sha1hex(text), 1, 12), 16), '', 0 end
  return record.version, record.nonce or '', record.expires
end

-- What the server shows now, and these slots: name, text, and whether it was ever used.
local function answer(status, names)
  local out = {status, int(MICROS), ID, REPLICATION, redis.call('INFO', 'persistence'),
    redis.call('GET', META) or '', int(redis.call('SISMEMBER', BORN, LETTER .. '/')),
    int(redis.call('HLEN', RECORDS))}
  local known = redis.call('HMGET', HISTORY, 'history', 'began', 'forked', 'settles', 'replid', 'since', 'marked:' .. LETTER)
  for at = 1, 7 do out[#out + 1] = known[at] or '' end
  for _, name in ipairs(names) do
    out[#out + 1] = name
    out[#out + 1] = redis.call('HGET', RECORDS, name) or ''
    out[#out + 1] = int(redis.call('SISMEMBER', BORN, LETTER .. '/' .. name))
  end
  return out
end

