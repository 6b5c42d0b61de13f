-- Workers that look free: unused ones, those free with the lowest horizon, and those that lapsed.
local first, last, count = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
local start, favourite, nonce = tonumber(ARGV[8]), ARGV[9], ARGV[10]
if redis.call('ZCARD', FREE) + redis.call('ZCARD', HELD) < redis.call('HLEN', RECORDS) then
  return answer('unindexed', {})
end
local names, seen = {}, {}
local function add(name)
  local number = tonumber(name or '')
  if not number or number < first or number > last or seen[name] then return end
  seen[name] = true
  names[#names + 1] = name
end
add(favourite)
add(redis.call('HGET', NONCES, nonce) or '')
local number = start
for _ = 1, math.min(last - first + 1, 1024) do
  if #names > count then break end
  if redis.call('SISMEMBER', BORN, 'w/' .. int(number)) == 0 then add(int(number)) end
  number = number == last and first or number + 1
end
for _, name in ipairs(redis.call('ZRANGE', FREE, 0, 4 * count)) do add(name) end
for _, name in ipairs(redis.call('ZRANGEBYSCORE', HELD, '-inf', int(TIME), 'LIMIT', 0, 4 * count)) do add(name) end
return answer('look', names, int(redis.call('ZCOUNT', HELD, '(' .. int(TIME), '+inf')))
