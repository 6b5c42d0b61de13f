-- The rest that writes: meta, the beginning of a history, and a slot that is forgotten.
local what, expected, word = ARGV[5], ARGV[6], ARGV[7]
local function begin(began, forked, settles)
  redis.call('HSET', HISTORY, 'history', ID, 'began', began, 'forked', forked, 'settles', settles, 'marked:' .. LETTER, '1')
  for _, name in ipairs(redis.call('HKEYS', RECORDS)) do redis.call('SADD', BORN, LETTER .. '/' .. name) end
  redis.call('SADD', BORN, LETTER .. '/')
end
if what == 'meta' then
  local text = redis.call('GET', META)
  local fine, meta = pcall(cjson.decode, text or '{"version":0}')
  local old = fine and type(meta) == 'table' and tonumber(meta.version)
  if not old then return answer('corrupt', {}) end
  if (text and int(old) or '') ~= expected then return answer('conflict', {}) end
  local version = int(math.max(old + 1, MICROS))
  redis.call('SET', META, '{"version":' .. version .. ',' .. string.sub(word, 2))
  -- Nothing was ever acknowledged here as far as anybody can tell.
  if not text and redis.call('EXISTS', HISTORY) == 0 then begin('0', '0', ARGV[8]) end
  return answer('done', {}, version)
elseif what == 'begin' then
  if table.concat(KNOWN, ' ', 1, 4) ~= expected then return answer('conflict', {}) end
  begin(word, ARGV[8], ARGV[9])
  return answer('done', {})
end
local version, _, expires = cell(word, expected)
if int(version) ~= expected or expires > TIME then return answer('conflict', {}) end
redis.call('HDEL', RECORDS, word)
redis.call('SREM', BORN, LETTER .. '/' .. word)
redis.call('PUBLISH', CHANNEL, LETTER .. '/' .. word)
return answer('done', {})
