-- The first change whose conditions hold. Seven words each: name, version, nonce, who may be
-- present, time to live, horizon, text.
local history, meta_version, once = ARGV[5], ARGV[6], ARGV[7]
local names = {}
for at = 8, #ARGV, 7 do names[#names + 1] = ARGV[at] end
local is_begun = redis.call('HGET', HISTORY, 'history') == ID
if not is_begun or redis.call('SISMEMBER', BORN, LETTER .. '/') == 0 then return answer('begin', names) end
if history ~= '' and history ~= ID then return answer('conflict', names) end
if meta_version ~= '' then
  local fine, meta = pcall(cjson.decode, redis.call('GET', META) or '')
  if not fine or type(meta.version) ~= 'number' or int(meta.version) ~= meta_version then
    return answer('conflict', names)
  end
end
local served = once ~= '' and redis.call('HGET', NONCES, once)
if served and select(2, cell(served)) == once then return answer('conflict', {served}) end
for at = 8, #ARGV, 7 do
  local name, read, nonce, who, ttl, horizon, text = unpack(ARGV, at, at + 6)
  local version, known, expires = cell(name)
  local is_present = expires > TIME
  if int(version) == read and known == nonce and not (is_present and who == 'nobody') then
    version = math.max(version + 1, MICROS)
    local until_time = ttl ~= '' and TIME + tonumber(ttl) or 0
    local stamp = '{"version":' .. int(version) .. ',"expires":' .. (ttl ~= '' and int(until_time) or 'null') .. ','
    redis.call('HSET', RECORDS, name, stamp .. string.sub(text, 2))
    redis.call('SADD', BORN, LETTER .. '/' .. name)
    if LETTER == 'w' then
      redis.call('ZADD', ttl ~= '' and HELD or FREE, ttl ~= '' and int(until_time) or horizon, name)
      redis.call('ZREM', ttl ~= '' and FREE or HELD, name)
      if known ~= '' and (who == 'nobody' or ttl == '') then redis.call('HDEL', NONCES, known) end
      if once ~= '' then redis.call('HSET', NONCES, once, name) end
    end
    if not (is_present and ttl ~= '') then redis.call('PUBLISH', CHANNEL, LETTER .. '/' .. name) end
    local out = answer('done', {})
    for _, word in ipairs({int((at - 8) / 7), int(version), int(until_time)}) do table.insert(out, 2, word) end
    return out
  end
end
return answer('conflict', names)
