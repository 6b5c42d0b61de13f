-- Which commands the user may not run, before anything depends on it.
local missing = {}
for _, command in ipairs(redis.acl_check_cmd and cjson.decode(ARGV[1]) or {}) do
  if not redis.acl_check_cmd(unpack(command)) then missing[#missing + 1] = '+' .. command[1] end
end
if not redis.acl_check_cmd and redis.pcall('INFO', 'replication').err then missing = {'+info'} end
return missing
