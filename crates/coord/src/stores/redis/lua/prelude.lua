-- What every script begins with: keys, the clock, the server's account of itself, and cells.
-- Lua's numbers are doubles, exact up to 2^53.
local META, HISTORY, RECORDS, BORN, FREE, HELD, NONCES = unpack(KEYS)
local LETTER, CHANNEL, RUN, IN_CLUSTER = unpack(ARGV)
local clock = redis.call('TIME')
local MICROS = tonumber(clock[1]) * 1000000 + tonumber(clock[2])
local TIME = math.floor(MICROS / 1000)
local REPLICATION = redis.call('INFO', 'replication')
if not string.find(REPLICATION, 'role:master', 1, true) then
  return redis.error_reply('READONLY this server is a replica')
end
-- A restart, a promotion and a move of the hash slot begin another history.
local epoch = IN_CLUSTER == '1' and string.match(redis.call('CLUSTER', 'INFO'), 'cluster_my_epoch:(%d+)') or ''
local ID = RUN .. ':' .. string.match(REPLICATION, 'master_replid:(%x*)') .. ':' .. epoch
local KNOWN = redis.call('HMGET', HISTORY, 'history', 'began', 'forked', 'settles', 'replid', 'since', 'marked:' .. LETTER)
for at = 1, 7 do KNOWN[at] = KNOWN[at] or '' end
local IS_MARKED = redis.call('SISMEMBER', BORN, LETTER .. '/')

local function int(number) return string.format('%.0f', number) end

-- The version, the nonce and the expiry of a slot, for whoever read this version of it.
local function cell(name, read)
  local text = redis.call('HGET', RECORDS, name) or ''
  -- Who cannot read a text names this instead of a version, so that it can be replaced.
  local fingerprint = tonumber(string.sub(redis.sha1hex(text), 1, 12), 16)
  if text == '' then return 0, '', 0 end
  if read == int(fingerprint) then return fingerprint, '', 0 end
  local fine, record = pcall(cjson.decode, text)
  record = fine and type(record) == 'table' and record or {}
  local nonce = type(record.nonce) == 'string' and record.nonce or ''
  return math.max(tonumber(record.version) or 1, 1), nonce, tonumber(record.expires) or 0
end

-- What the server shows now, and these slots: name, text, and whether it was ever used.
local function answer(status, names, ...)
  local out = {status, ...}
  local function add(...) for _, word in ipairs({...}) do out[#out + 1] = word end end
  add(int(MICROS), ID, REPLICATION, redis.call('INFO', 'persistence'), redis.call('GET', META) or '')
  add(int(IS_MARKED), int(redis.call('HLEN', RECORDS)), unpack(KNOWN))
  for _, name in ipairs(names) do
    local was_used = redis.call('SISMEMBER', BORN, LETTER .. '/' .. name)
    add(name, redis.call('HGET', RECORDS, name) or '', int(was_used))
  end
  return out
end

