-- Slots by name, or with '*' every slot of the kind that was ever used.
local names = {unpack(ARGV, 5)}
if names[1] == '*' then
  local seen = {}
  names = redis.call('HKEYS', RECORDS)
  for _, name in ipairs(names) do seen[name] = true end
  for _, mark in ipairs(redis.call('SMEMBERS', BORN)) do
    local name = string.match(mark, '^' .. LETTER .. '/(.+)$')
    if name and not seen[name] then names[#names + 1] = name end
  end
end
return answer('look', names)
