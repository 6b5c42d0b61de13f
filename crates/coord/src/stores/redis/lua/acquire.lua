-- rules::acquire, for one slot or for any worker of a range.
local argument = 6
local function take_argument()
  argument = argument + 1
  return ARGV[argument]
end
local nonce, holder, more = take_argument(), take_argument(), take_argument()
local ttl, now, ask = tonumber(take_argument()), tonumber(take_argument()), tonumber(take_argument())
local window, quarantine = tonumber(take_argument()), tonumber(take_argument())
local meta_version, newest = take_argument(), tonumber(take_argument())
local mode = take_argument()

local meta_text = redis.call('GET', META)
if not meta_text then return {'moved'} end
local fine, meta = pcall(cjson.decode, meta_text)
if not fine or type(meta) ~= 'table' then return {'corrupt', 'meta is not JSON'} end
if is_whole(meta.format) and meta.format > newest then return {'newer', int(meta.format)} end
if not is_whole(meta.version) then return {'corrupt', 'meta has no version'} end
-- Looked at after the nonce: a claim that was served stays served.
local has_moved = int(meta.version) ~= meta_version

local guard, since = notice(window)
-- See (4) of the lineage guard.
if LETTER ~= 'w' then guard = since > 0 and since + math.max(window, ttl) or 0 end
-- The lowest floor that any slot can have now.
local base = math.max(quarantine, guard)
-- By this clock too, and without running ahead: see (3) of the lineage guard.
local is_guarded = guard > TIME

local function held(name, record, prior)
  return {'held', name, int(record.version), int(record.token), int(record.floor),
    int(record.horizon), int(record.expires or 0), int(TIME), REPLID, int(prior)}
end

-- The tenure that this claim already has, if it came through before.
local function again(name, record)
  if record == nil or record.nonce ~= nonce then return nil end
  -- An expiry counts for no more than the window after it was given.
  local expires = record.expires and math.min(record.expires, record.expires - ttl + window)
  if not is_whole_truth(record.lineage, expires) then return nil end
  record.lineage = REPLID
  -- Written again, so that WAIT waits for it whatever this version takes for the last write.
  redis.call('HSET', RECORDS, name, encode(record))
  return held(name, record, record.version)
end

local function floor_of(state, record)
  if state == 'known' then return math.max(record.horizon, base) end
  if state == 'lost' then return math.max(now + window, base) end
  return base
end

-- 'takeable', 'blocked' or 'poisoned'.
local function outlook(floor)
  if is_guarded then return 'blocked' end
  if floor <= now + RUN_AHEAD then return 'takeable' end
  if floor - now <= window + RUN_AHEAD or base >= floor then return 'blocked' end
  return 'poisoned'
end

local function take(name, state, record, version)
  local floor = floor_of(state, record)
  if record and record.nonce then redis.call('HDEL', NONCES, record.nonce) end
  local taken = {
    version = next_version(version),
    token = math.max(record and record.token + 1 or 0, TIME),
    nonce = nonce, holder = holder, floor = floor,
    horizon = math.max(floor, capped(ask, now, window)),
    renewed = now, expires = TIME + ttl, info = cjson.decode(more), lineage = REPLID,
  }
  write(name, taken, encode(taken))
  announce(name)
  if mode == 'any' then redis.call('HSET', NONCES, nonce, name) end
  return held(name, taken, version)
end

local function full(census)
  return {'full', int(census.held), int(census.blocked), int(census.poisoned),
    census.next_floor and int(census.next_floor) or ''}
end

if mode == 'this' then
  local name, read = take_argument(), take_argument()
  local state, version, record = look(name)
  local before = again(name, record)
  if before then return before end
  if has_moved then return {'moved'} end
  if int(version) ~= read or is_present(record) then return {'taken'} end
  local floor = floor_of(state, record)
  local good_for = outlook(floor)
  if good_for == 'takeable' then return take(name, state, record, version) end
  if good_for == 'poisoned' then return full({held = 0, blocked = 0, poisoned = 1}) end
  return full({held = 0, blocked = 1, poisoned = 0, next_floor = floor})
end

local first, last = tonumber(take_argument()), tonumber(take_argument())
local favourite = tonumber(take_argument())
local seed = tonumber(string.sub(nonce, 1, 8), 16)

local function is_in_range(number)
  return number ~= nil and number >= first and number <= last
end

-- Takes a worker if it is as free as it looked.
local function try(name, limit)
  local state, version, record = look(name)
  if is_present(record) then
    file(name, record)
    return nil
  end
  if state == 'lost' then
    -- It counts as blocked until it is repaired, and is not looked at again.
    redis.call('ZREM', FREE, name)
    redis.call('ZREM', HELD, name)
    return nil
  end
  local floor = floor_of(state, record)
  if floor > limit then
    if record then file(name, record) end
    return nil
  end
  return take(name, state, record, version)
end

-- How many lapsed workers one claim files under the free ones: some milliseconds' worth.
local SWEEP = 128

-- Presence lapses by time alone, so nobody files a lapsed worker until here. True: there is more.
local function sweep()
  local lapsed = redis.call('ZRANGEBYSCORE', HELD, '-inf', int(TIME), 'LIMIT', 0, SWEEP)
  for _, name in ipairs(lapsed) do
    local _, _, record = look(name)
    if record then file(name, record) else redis.call('ZREM', HELD, name) end
  end
  return #lapsed == SWEEP
end

-- How many numbers one look for a new one goes through: some milliseconds' worth.
local SCAN = 1024

-- A number that was never used: a few at random, so that those who start after a loss of data
-- rarely want the same, then those above the lowest that may still be new. Second: whether there
-- may be one although none was found.
local function find_new()
  local size = last - first + 1
  local function is_new(number)
    return redis.call('SISMEMBER', BORN, 'w/' .. int(number)) == 0
      and redis.call('HEXISTS', RECORDS, int(number)) == 0
  end
  for probe = 1, 8 do
    seed = (seed * 48271 + probe) % 2147483647
    local number = first + seed % size
    if is_new(number) then return number, true end
  end
  local cursor = redis.call('HMGET', LINEAGE, 'first', 'next')
  local start = first
  if tonumber(cursor[1] or '') == first then
    start = math.max(first, tonumber(cursor[2] or '') or first)
  end
  local number, stop = start, math.min(last, start + SCAN)
  while number <= stop and not is_new(number) do number = number + 1 end
  if number > start then
    redis.call('HSET', LINEAGE, 'first', int(first), 'next', int(number))
  end
  if number <= stop then return number, true end
  return nil, stop < last
end

-- The free worker with the lowest horizon that can be taken.
local function find_used()
  local limit = now + RUN_AHEAD
  local offset = 0
  while true do
    local names = redis.call('ZRANGEBYSCORE', FREE, '-inf', int(limit), 'LIMIT', offset, 32)
    local stays = 0
    for _, name in ipairs(names) do
      if is_in_range(tonumber(name)) then
        local taken = try(name, limit)
        if taken then return taken end
      else
        stays = stays + 1
      end
    end
    -- What was tried in vain is filed elsewhere now, so only the others are skipped.
    offset = offset + stays
    if #names < 32 then return nil end
  end
end

-- Up to this many workers are counted one by one; in a larger pool the few outside the range count.
local COUNTED = 4096

-- Takes workers whose records somebody deleted out of an index.
local function weed(index)
  for _, name in ipairs(redis.call('ZRANGE', index, 0, -1)) do
    if redis.call('HEXISTS', RECORDS, name) == 0 then redis.call('ZREM', index, name) end
  end
end

-- Files workers again that are in no index, because an index was lost: nobody would find them.
local function file_all()
  local records = redis.call('HGETALL', RECORDS)
  for at = 1, #records, 2 do
    local record = decode(records[at + 1])
    if record then file(records[at], record) end
  end
end

local function count()
  local size = last - first + 1
  local census = {held = 0, blocked = 0, poisoned = 0}
  local used, lowest = 0, nil
  local poisoned_above = math.max(now + window + RUN_AHEAD, base)
  local indexed = redis.call('ZCARD', FREE) + redis.call('ZCARD', HELD)
  if indexed <= COUNTED then
    local records = redis.call('HLEN', RECORDS)
    if indexed > records then
      weed(FREE)
      weed(HELD)
    elseif indexed < records and records <= COUNTED then
      file_all()
    end
    for _, name in ipairs(redis.call('ZRANGEBYSCORE', HELD, '(' .. int(TIME), '+inf')) do
      if is_in_range(tonumber(name)) then census.held = census.held + 1 end
    end
    local free = redis.call('ZRANGE', FREE, 0, -1, 'WITHSCORES')
    for at = 1, #free, 2 do
      if is_in_range(tonumber(free[at])) then
        used = used + 1
        local horizon = tonumber(free[at + 1])
        if horizon > poisoned_above then
          census.poisoned = census.poisoned + 1
        elseif not lowest then
          lowest = math.max(horizon, base)
        end
      end
    end
  else
    census.held = redis.call('ZCOUNT', HELD, '(' .. int(TIME), '+inf')
    used = redis.call('ZCARD', FREE)
    census.poisoned = redis.call('ZCOUNT', FREE, '(' .. int(poisoned_above), '+inf')
    local best = redis.call('ZRANGE', FREE, 0, 0, 'WITHSCORES')
    if best[2] and tonumber(best[2]) <= poisoned_above then
      lowest = math.max(tonumber(best[2]), base)
    end
  end
  census.blocked = math.max(0, size - census.held - census.poisoned)
  -- The rest is new, and blocked by the base alone, or its records are lost.
  if census.held + used < size then
    local _, has_new = find_new()
    local rest = has_new and base or math.max(now + window, base)
    lowest = math.min(lowest or rest, rest)
  end
  if census.blocked > 0 then census.next_floor = lowest end
  return full(census)
end

local before = redis.call('HGET', NONCES, nonce)
if before then
  local _, _, record = look(before)
  local same = again(before, record)
  if same then return same end
end
if has_moved then return {'moved'} end

local more_lapsed = sweep()
if not is_guarded and base <= now + RUN_AHEAD then
  if is_in_range(favourite) then
    local loved = try(int(favourite), now)
    if loved then return loved end
  end
  while true do
    local new, has_new = find_new()
    if new then return take(int(new), 'new', nil, 0) end
    local used = find_used()
    if used then return used end
    if not (more_lapsed or has_new) then break end
    more_lapsed = more_lapsed and sweep()
  end
end
return count()
