-- rules::extend.
local name, token, nonce = ARGV[7], tonumber(ARGV[8]), ARGV[9]
local lineage, expires, answered = ARGV[10], tonumber(ARGV[11]), tonumber(ARGV[12])
local acknowledged = tonumber(ARGV[13])
local ask, ttl, now, window = tonumber(ARGV[14]), tonumber(ARGV[15]), tonumber(ARGV[16]), tonumber(ARGV[17])

if redis.call('EXISTS', META) == 0 then return {'lost', 'vanished'} end
local _, _, record = look(name)
if not record then return {'lost', 'vanished'} end
notice(window)
if record.nonce ~= nonce or record.token ~= token then
  if record.nonce == nil and record.token == token then return {'lost', 'released'} end
  -- Tokens rise, and a successor starts above all that was acknowledged before it.
  if record.token < token then return {'lost', 'regressed'} end
  if record.floor < acknowledged then
    return {'lost', 'overlapped', int(record.token), record.holder}
  end
  return {'lost', 'superseded', int(record.token), record.holder}
end
-- An expiry counts for no more than the window after it was given: see (3) of the lineage guard.
if expires and answered then expires = math.min(expires, answered + window) else expires = nil end
if not is_whole_truth(lineage, expires) then return {'lost', 'lapsed'} end
-- What was acknowledged counts: the extension that gave it may be what was lost.
record.horizon = math.max(record.horizon, acknowledged, capped(ask, now, window))
local was_present = is_present(record)
record.renewed = now
record.expires = TIME + ttl
record.lineage = REPLID
record.version = next_version(record.version)
write(name, record, encode(record))
-- Others need not know of every heartbeat, but of who came back.
if not was_present then announce(name) end
return {'held', int(record.version), int(record.horizon), int(record.expires), int(TIME), REPLID}
