-- The time, meta, and until when the lineage guard lets nobody new in: empty if it lets them.
local meta = redis.call('GET', META) or ''
local guard = meta == '' and 0 or weigh(0).guard
return {int(TIME), meta, guard > TIME and int(guard) or ''}
