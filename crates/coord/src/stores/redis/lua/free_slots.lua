-- Workers that look free: unused ones, those free with the lowest horizon, and those that lapsed.
local first, last, count = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
local at, step, favourite, nonce = tonumber(ARGV[8]), tonumber(ARGV[9]), ARGV[10], ARGV[11]
if redis.call('ZCARD', FREE) + redis.call('ZCARD', HELD) < redis.call('HLEN', RECORDS) then
  return answer('unindexed', {})
end
local names, seen, size = {}, {}, last - first + 1
local function add(name)
  local number = tonumber(name or '')
  if not number or number < first or number > last or seen[name] then return end
  seen[name] = true
  names[#names + 1] = name
end
add(favourite)
add(redis.call('HGET', NONCES, nonce) or '')
for _ = 1, math.min(size, 1024) do
  if #names > count then break end
  if redis.call('SISMEMBER', BORN, 'w/' .. int(first + at)) == 0 then add(int(first + at)) end
  at = (at + step) % size
end
for _, name in ipairs(redis.call('ZRANGE', FREE, 0, 4 * count)) do add(name) end
for _, name in ipairs(redis.call('ZRANGEBYSCORE', HELD, '-inf', int(TIME), 'LIMIT', 0, 4 * count)) do add(name) end
return answer('look', names, int(redis.call('ZCOUNT', HELD, '(' .. int(TIME), '+inf')))
