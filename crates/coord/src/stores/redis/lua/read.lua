-- Meta, and the time.
return {int(TIME), redis.call('GET', META) or ''}
