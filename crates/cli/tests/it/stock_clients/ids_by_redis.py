"""Uses a server as any application with redis-py would. Argument: the port."""

import sys

import redis

port = int(sys.argv[1])
for protocol in (2, 3):
    client = redis.Redis(port=port, protocol=protocol, decode_responses=True)
    assert client.ping()
    first = client.incr("orders")
    many = [int(text) for text in client.execute_command("ID.NEXT", 100)]
    assert first < many[0] and many == sorted(set(many)) and len(many) == 100
    pipeline = client.pipeline(transaction=False)
    for _ in range(1000):
        pipeline.incr("x")
    ids = pipeline.execute()
    assert len(set(ids)) == 1000 and ids == sorted(ids) and ids[0] > many[-1]
    decoded = client.execute_command("ID.DECODE", first)
    decoded = decoded if protocol == 3 else dict(zip(decoded[::2], decoded[1::2]))
    assert decoded["id"] == str(first), decoded
    try:
        client.execute_command("ID.NEXT", 0)
        raise SystemExit("a count of 0 was accepted")
    except redis.ResponseError as error:
        assert str(error).startswith("COUNT_OUT_OF_RANGE"), error
    client.close()
print("ok")
