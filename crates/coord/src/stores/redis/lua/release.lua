-- rules::release.
local name, token, nonce = ARGV[7], tonumber(ARGV[8]), ARGV[9]
local lineage, expires, answered = ARGV[10], tonumber(ARGV[11]), tonumber(ARGV[12])
local acknowledged, last = tonumber(ARGV[13]), tonumber(ARGV[14])

local _, _, record = look(name)
if not record then return {'over', 'vanished'} end
notice(0)
if record.nonce ~= nonce or record.token ~= token then
  local is_released = record.nonce == nil and record.token == token
  return {'over', is_released and 'released' or 'superseded'}
end
if lineage ~= REPLID then
  record.horizon = math.max(record.horizon, acknowledged)
end
if expires and answered then
  local widest = tonumber(redis.call('HGET', LINEAGE, 'widest') or '') or 0
  expires = math.min(expires, answered + widest)
end
-- After a lapse in another lineage somebody else may have had the slot: then it stays as high.
if is_whole_truth(lineage, expires) then
  record.horizon = math.max(record.floor, math.min(last, record.horizon))
end
record.nonce = nil
record.expires = nil
record.version = next_version(record.version)
write(name, record, encode(record))
announce(name)
redis.call('HDEL', NONCES, nonce)
return {'done'}
