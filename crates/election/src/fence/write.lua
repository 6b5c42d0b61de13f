-- KEYS: what is guarded, its fence. ARGV: the token, and the value if one is to be written.
-- Gives 1 and the token, or 0 and the highest token seen.
-- Tokens are compared as texts: Lua's numbers are not exact above 2^53.
local function is_token(text) return text and text:match('^[1-9]%d*$') ~= nil end
local function is_less(a, b)
  if #a ~= #b then return #a < #b end
  return a < b
end
local token, highest = ARGV[1], redis.call('GET', KEYS[2])
if not is_token(token) then return redis.error_reply('ERR the token is not a positive number') end
if highest then
  if not is_token(highest) then return redis.error_reply('ERR the fence is not a token') end
  if is_less(token, highest) then return {0, highest} end
end
if highest ~= token then redis.call('SET', KEYS[2], token) end
if ARGV[2] then redis.call('SET', KEYS[1], ARGV[2]) end
return {1, token}
