-- Which commands the user may not run, before anything depends on it. Its own rights to the keys
-- were checked when it was called.
local channel = ARGV[1]
local missing = {}
if redis.acl_check_cmd then
  local key = KEYS[1]
  local needed = {
    {'info', 'replication'}, {'time'}, {'ping'}, {'wait', '0', '1'}, {'get', key}, {'set', key, '1'},
    {'exists', key}, {'hget', key, 'f'}, {'hset', key, 'f', '1'}, {'hdel', key, 'f'},
    {'hmget', key, 'f'}, {'hgetall', key}, {'hexists', key, 'f'}, {'hlen', key},
    {'sadd', key, 'm'}, {'sismember', key, 'm'},
    {'smembers', key}, {'zadd', key, '1', 'm'}, {'zrem', key, 'm'}, {'zrange', key, '0', '1'},
    {'zrangebyscore', key, '0', '1'}, {'zcard', key}, {'zcount', key, '0', '1'},
    {'evalsha', 'x', '1', key}, {'publish', channel, 'm'}, {'subscribe', channel},
  }
  for _, command in ipairs(needed) do
    if not redis.acl_check_cmd(unpack(command)) then missing[#missing + 1] = '+' .. command[1] end
  end
else
  local answer = redis.pcall('INFO', 'replication')
  if type(answer) == 'table' and answer.err then missing = {'+info'} end
end
return missing
