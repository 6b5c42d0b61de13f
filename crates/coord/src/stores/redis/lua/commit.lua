-- The first change whose conditions hold. Seven words each: name, version, nonce, who may be
-- present, time to live, horizon, text.
local history, meta_version, once = ARGV[5], ARGV[6], ARGV[7]
local names = {}
for at = 8, #ARGV, 7 do names[#names + 1] = ARGV[at] end
if KNOWN[1] ~= ID or IS_MARKED == 0 then return answer('begin', names) end
if history ~= '' and history ~= ID then return answer('conflict', names) end
if meta_version ~= '' then
  local fine, meta = pcall(cjson.decode, redis.call('GET', META) or '')
  local is_same = fine and type(meta) == 'table' and int(tonumber(meta.version) or 0) == meta_version
  if not is_same then return answer('conflict', names) end
end
local served = once ~= '' and redis.call('HGET', NONCES, once)
if served and select(2, cell(served)) == once then return answer('conflict', {served}) end
for at = 8, #ARGV, 7 do
  local name, read, nonce, who, ttl, horizon, text = unpack(ARGV, at, at + 6)
  local version, known, expires = cell(name, read)
  local is_present, stays = expires > TIME, ttl ~= ''
  if int(version) == read and known == nonce and not (is_present and who == 'nobody') then
    version = math.max(version + 1, MICROS)
    local ends = stays and TIME + tonumber(ttl) or 0
    local stamp = '{"version":' .. int(version) .. ',"expires":' .. (stays and int(ends) or 'null') .. ','
    redis.call('HSET', RECORDS, name, stamp .. string.sub(text, 2))
    redis.call('SADD', BORN, LETTER .. '/' .. name)
    if LETTER == 'w' then
      redis.call('ZADD', stays and HELD or FREE, stays and int(ends) or horizon, name)
      redis.call('ZREM', stays and FREE or HELD, name)
      if known ~= '' and (who == 'nobody' or not stays) then redis.call('HDEL', NONCES, known) end
      if once ~= '' then redis.call('HSET', NONCES, once, name) end
    end
    if not (is_present and stays) then redis.call('PUBLISH', CHANNEL, LETTER .. '/' .. name) end
    return answer('done', {}, int(ends), int(version), int((at - 8) / 7))
  end
end
return answer('conflict', names)
