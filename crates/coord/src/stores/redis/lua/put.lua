-- Writes a record that nobody is present in over the version that was read.
local name, expected, text = ARGV[7], ARGV[8], ARGV[9]

notice(0)
local _, version, record = look(name)
if is_present(record) or int(version) ~= expected then return {'conflict'} end
if record and record.nonce then redis.call('HDEL', NONCES, record.nonce) end
local new = next_version(version)
text = '{"version":' .. int(new) .. ',' .. string.sub(text, 2)
local fresh = decode(text)
if not fresh then return {'corrupt', 'the record does not fit'} end
write(name, fresh, text)
announce(name)
return {'done', int(new)}
