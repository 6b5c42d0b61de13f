-- What every script begins with: keys, clocks, the lineage and the record's text.
--
-- Times are Unix milliseconds. Lua numbers are doubles, exact up to 2^53: all that is written goes
-- through `int`, and a record with a larger number counts as unreadable.

local META, LINEAGE, RECORDS, BORN = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local FREE, HELD, NONCES = KEYS[5], KEYS[6], KEYS[7]
-- ARGV 1 to 6 are the same in every script.
local LETTER, CHANNEL = ARGV[1], ARGV[2]
local ISOLATION, SKEW, DURABLE = tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5] == '1'
local RUN_AHEAD = tonumber(ARGV[6])

local EXACT = 9007199254740991
local clock = redis.call('TIME')
local MICROS = tonumber(clock[1]) * 1000000 + tonumber(clock[2])
local TIME = math.floor(MICROS / 1000)

local replication = redis.call('INFO', 'replication')
local function info(name)
  return string.match(replication, name .. ':([^\r\n]*)')
end
-- Also where replicas are writable, and for scripts that only read.
if info('role') ~= 'master' then
  return redis.error_reply('READONLY this server is a replica')
end
local REPLID = info('master_replid')

local function int(number)
  return string.format('%.0f', number)
end

local function is_whole(value)
  return type(value) == 'number' and value >= 0 and value <= EXACT and value == math.floor(value)
end

local function is_absent(value)
  return value == nil or value == cjson.null
end

-- The record behind a text, or nil if it is not one.
local function decode(text)
  local fine, record = pcall(cjson.decode, text)
  if not fine or type(record) ~= 'table' then return nil end
  for _, name in ipairs({'version', 'token', 'floor', 'horizon', 'renewed'}) do
    if not is_whole(record[name]) then return nil end
  end
  if record.version < 1 or type(record.holder) ~= 'string' then return nil end
  if is_absent(record.nonce) then
    record.nonce = nil
  elseif type(record.nonce) ~= 'string' or #record.nonce ~= 32 or string.find(record.nonce, '%X') then
    return nil
  end
  if is_absent(record.expires) then
    record.expires = nil
  elseif not is_whole(record.expires) then
    return nil
  end
  if record.info ~= nil then
    if type(record.info) ~= 'table' then return nil end
    for name, value in pairs(record.info) do
      if type(name) ~= 'string' or type(value) ~= 'string' then return nil end
    end
  end
  return record
end

local NUMBERS = {'version', 'token', 'floor', 'horizon', 'renewed'}
local KNOWN = {version = 1, token = 1, floor = 1, horizon = 1, renewed = 1, nonce = 1, holder = 1,
  expires = 1, info = 1, lineage = 1}

-- The text of a record. Fields that this version does not know survive, except that their numbers
-- keep 14 digits only.
local function encode(record)
  local parts = {}
  for _, name in ipairs(NUMBERS) do
    parts[#parts + 1] = '"' .. name .. '":' .. int(record[name])
  end
  parts[#parts + 1] = '"nonce":' .. (record.nonce and '"' .. record.nonce .. '"' or 'null')
  parts[#parts + 1] = '"holder":' .. cjson.encode(record.holder)
  if record.expires then parts[#parts + 1] = '"expires":' .. int(record.expires) end
  if record.info and next(record.info) then
    parts[#parts + 1] = '"info":' .. cjson.encode(record.info)
  end
  if type(record.lineage) == 'string' then
    parts[#parts + 1] = '"lineage":' .. cjson.encode(record.lineage)
  end
  for name, value in pairs(record) do
    if not KNOWN[name] then
      local fine, text = pcall(cjson.encode, value)
      if fine then parts[#parts + 1] = cjson.encode(name) .. ':' .. text end
    end
  end
  return '{' .. table.concat(parts, ',') .. '}'
end

-- Stands in for the version of a record that cannot be read, so that it can be replaced.
local function fingerprint(text)
  local sum = 7
  for at = 1, #text do
    sum = (sum * 31 + string.byte(text, at)) % 2147483647
  end
  return sum + 1
end

-- What is known of a slot: 'new', 'lost' or 'known'; its version; its record.
local function look(name)
  local text = redis.call('HGET', RECORDS, name)
  if not text then
    if redis.call('SISMEMBER', BORN, LETTER .. '/' .. name) == 1 then return 'lost', 0 end
    return 'new', 0
  end
  local record = decode(text)
  if record then return 'known', record.version, record end
  return 'lost', fingerprint(text)
end

local function is_present(record)
  return record ~= nil and record.expires ~= nil and record.expires > TIME
end

-- Files a worker under the free ones, by horizon, or under the held ones, by expiry.
local function file(name, record)
  if LETTER ~= 'w' then return end
  if is_present(record) then
    redis.call('ZADD', HELD, int(record.expires), name)
    redis.call('ZREM', FREE, name)
  else
    redis.call('ZADD', FREE, int(record.horizon), name)
    redis.call('ZREM', HELD, name)
  end
end

-- Versions follow real time, so that none returns after a record was deleted and put again.
local function next_version(old)
  return math.max(old + 1, MICROS)
end

-- Writes a record. The hash comes first: without memory it is the write that is refused, and then
-- nothing is written at all.
local function write(name, record, text)
  redis.call('HSET', RECORDS, name, text)
  redis.call('SADD', BORN, LETTER .. '/' .. name)
  file(name, record)
end

local function announce(name)
  redis.call('PUBLISH', CHANNEL, LETTER .. '/' .. name)
end

-- The lineage guard.
--
-- A lineage is the history of one master, named by master_replid: a restart and a promotion begin a
-- new one (and so do the first replica of a server, and repl-backlog-ttl without any, where nothing
-- is lost: newcomers then wait for nothing, which is safe). The new one may lack the end of the old one, acknowledged writes included. Let I be the
-- isolation bound, S the bound on how far the clocks of two servers are apart, W the window; and
-- suppose that an old master acknowledges nothing later than I after its successor was promoted.
--
-- (1) All that a lineage acknowledges at its time t ends at or before t + W. Whoever first writes
--     in a new lineage, at its time n, comes after the promotion; so the old one's last
--     acknowledgement is at most n + I + S by its clock, and what it covers ends at or before
--     n + I + S + W. That is the guard: every tenure acquired in the new lineage starts above it,
--     whatever the records say, also in slots that seem new.
-- (2) A holder from an older lineage extends in this one only if, at this time n, n + I + S is
--     before the expiry that it was told of. Until then the old master let nobody else in, and
--     after that it acknowledges nothing. Otherwise somebody may have been let in there, in a write
--     that was lost, and two would extend what they both hold.
-- (3) Several changes in a row need no more: the guard of the last one is later than all before it.
--     That of a lineage that was itself lost kept its newcomers out until W + I + S after it began
--     by its own clock (hence the comparison with TIME in acquire), which is later than any expiry
--     that the one before it can have given (hence the bound in extend: an expiry counts for no
--     more than W after it was given).
--
-- (4) Leaders and scopes are promised less than workers: a leader leads for its time to live, and a
--     scope's times end with its own window. So what they wait for is n + I + S, kept as `since`,
--     and the longer of the two.
--
-- Where nothing can have been lost (one server without replicas that syncs each write to disk, in
-- all of the old lineage and now) the new lineage continues the old one.
local UNBROKEN = ''

-- What was known of the lineage, and what it is taken for now. Writes nothing.
local function weigh(window)
  local known = redis.call('HMGET', LINEAGE, 'replid', 'guard', 'widest', 'sure', 'unbroken',
    'since')
  local before = tonumber(known[3] or '') or 0
  local guard = tonumber(known[2] or '') or 0
  local seen = {guard = guard, widest = math.max(before, window),
    since = tonumber(known[6] or '') or math.max(0, guard - before),
    was_sure = known[4] == '1', unbroken = known[5] or '', is_new = known[1] ~= REPLID}
  -- A server that was promoted remembers whom it followed.
  local alone = info('connected_slaves') == '0' and info('master_replid2') == string.rep('0', 40)
  seen.sure = DURABLE and alone
  seen.is_wider = seen.widest > before
  if seen.is_new and known[1] and seen.sure and seen.was_sure then
    -- The last few are enough: a holder is acknowledged in each.
    seen.unbroken = string.sub(seen.unbroken .. ' ' .. known[1], -400)
  elseif seen.is_new then
    seen.unbroken = ''
    seen.since = math.max(seen.since, TIME + ISOLATION + SKEW)
    seen.guard = math.max(seen.guard, seen.since + seen.widest)
  end
  return seen
end

-- The records of a group are one key, and the marks of all that was ever used another; eviction and
-- DEL take whole keys. A slot without a record is lost if it is marked, so that a group is safe as
-- long as it has one of the two. The marks have one for the group itself, and the lineage says that
-- it was made: if it is missing, either the records give the marks back, or both are gone. Then
-- slots in use seem new, and all that was promised must pass: no more than a window from now.
local function recall(seen)
  local group, known = LETTER .. '/', 'marked:' .. LETTER
  if redis.call('SISMEMBER', BORN, group) == 1 then return end
  local was_marked = redis.call('HGET', LINEAGE, known)
  local records = redis.call('HGETALL', RECORDS)
  for at = 1, #records, 2 do
    redis.call('SADD', BORN, group .. records[at])
  end
  if was_marked and #records == 0 then
    seen.since = math.max(seen.since, TIME + SKEW)
    seen.guard = math.max(seen.guard, seen.since + seen.widest)
    redis.call('HSET', LINEAGE, 'guard', int(seen.guard), 'since', int(seen.since))
  end
  redis.call('SADD', BORN, group)
  redis.call('HSET', LINEAGE, known, '1')
end

local function notice(window)
  local seen = weigh(window)
  UNBROKEN = seen.unbroken
  if seen.is_new then
    redis.call('HSET', LINEAGE, 'replid', REPLID, 'guard', int(seen.guard), 'widest',
      int(seen.widest), 'sure', seen.sure and '1' or '0', 'unbroken', UNBROKEN, 'since',
      int(seen.since))
  elseif seen.is_wider or (seen.was_sure and not seen.sure) then
    redis.call('HSET', LINEAGE, 'widest', int(seen.widest), 'sure',
      (seen.sure and seen.was_sure) and '1' or '0')
  end
  recall(seen)
  return seen.guard, seen.since
end

-- Whether what a lineage acknowledged, with this expiry, still is the whole truth: see (2).
local function is_whole_truth(lineage, expires)
  if lineage == REPLID then return true end
  if type(lineage) ~= 'string' or lineage == '' then return false end
  if string.find(UNBROKEN, lineage, 1, true) then return true end
  return expires ~= nil and TIME + ISOLATION + SKEW < expires
end

-- No horizon is further from now than the window, by the holder's clock nor by this one.
local function capped(ask, now, window)
  return math.min(ask, now + window, TIME + window)
end

