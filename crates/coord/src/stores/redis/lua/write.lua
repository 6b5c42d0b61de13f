-- The rest that writes: meta, the beginning of a history, and a slot that is forgotten.
local what, expected = ARGV[5], ARGV[6]
if what == 'meta' then
  local text = redis.call('GET', META)
  local fine, meta = pcall(cjson.decode, text or '{"version":0}')
  if not fine or type(meta) ~= 'table' or type(meta.version) ~= 'number' then return answer('corrupt', {}) end
  if (text and int(meta.version) or '') ~= expected then return answer('conflict', {}) end
  local version = int(math.max(meta.version + 1, MICROS))
  redis.call('SET', META, '{"version":' .. version .. ',' .. string.sub(ARGV[7], 2))
  -- Nothing was ever acknowledged here as far as anybody can tell.
  if not text and redis.call('EXISTS', HISTORY) == 0 then
    redis.call('HSET', HISTORY, 'history', ID, 'settles', ARGV[8])
  end
  local out = answer('done', {})
  table.insert(out, 2, version)
  return out
elseif what == 'begin' then
  if (redis.call('HGET', HISTORY, 'history') or '') ~= expected then return answer('conflict', {}) end
  redis.call('HSET', HISTORY, 'history', ID, 'began', ARGV[7], 'forked', ARGV[8], 'settles', ARGV[9],
    'marked:' .. LETTER, '1')
  for _, name in ipairs(redis.call('HKEYS', RECORDS)) do redis.call('SADD', BORN, LETTER .. '/' .. name) end
  redis.call('SADD', BORN, LETTER .. '/')
  return answer('done', {})
end
local version, _, expires = cell(ARGV[7])
if int(version) ~= expected or expires > TIME then return answer('conflict', {}) end
redis.call('HDEL', RECORDS, ARGV[7])
redis.call('SREM', BORN, LETTER .. '/' .. ARGV[7])
redis.call('PUBLISH', CHANNEL, LETTER .. '/' .. ARGV[7])
return answer('done', {})
