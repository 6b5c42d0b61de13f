-- Slots by name, or with '*' every slot of the kind that was ever used.
local names = {unpack(ARGV, 5)}
if names[1] == '*' then
  names = redis.call('HKEYS', RECORDS)
  for _, mark in ipairs(redis.call('SMEMBERS', BORN)) do
    local name = string.match(mark, '^' .. LETTER .. '/(.+)$')
    if name and not redis.call('HGET', RECORDS, name) then names[#names + 1] = name end
  end
end
return answer('look', names)
