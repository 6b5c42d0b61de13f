-- Replaces the version of meta that was read, or creates it.
local expected, text, window = ARGV[7], ARGV[8], tonumber(ARGV[9])

local old, version = redis.call('GET', META), 0
if old then
  local fine, meta = pcall(cjson.decode, old)
  if not fine or type(meta) ~= 'table' or not is_whole(meta.version) then
    return {'corrupt', 'meta is not JSON with a version'}
  end
  version = meta.version
end
if (old and int(version) or '') ~= expected then return {'conflict'} end
version = next_version(version)
redis.call('SET', META, '{"version":' .. int(version) .. ',' .. string.sub(text, 2))
if not old and redis.call('EXISTS', LINEAGE) == 0 then
  -- Nothing was ever acknowledged here as far as anybody can tell: there is nothing to guard.
  redis.call('HSET', LINEAGE, 'replid', REPLID, 'sure', DURABLE and '1' or '0')
end
notice(window)
return {'done', int(version)}
