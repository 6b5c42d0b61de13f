"""Calls a server that it knows nothing about beforehand. Argument: the address."""

import sys

import grpc
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import (
    ProtoReflectionDescriptorDatabase,
)

channel = grpc.insecure_channel(sys.argv[1])
database = ProtoReflectionDescriptorDatabase(channel)
services = set(database.get_services())
assert {"frazil.v1.IdService", "grpc.health.v1.Health"} <= services, services
pool = DescriptorPool(database)
service = pool.FindServiceByName("frazil.v1.IdService")


def message(name):
    return GetMessageClass(pool.FindMessageTypeByName(f"frazil.v1.{name}"))


def method(name, request, response, kind=channel.unary_unary):
    return kind(
        f"/{service.full_name}/{name}",
        request_serializer=request.SerializeToString,
        response_deserializer=response.FromString,
    )


Next, Ids = message("NextRequest"), message("NextResponse")
next_ids = method("Next", Next, Ids)
ids = list(next_ids(Next(count=1000)).ids)
assert len(set(ids)) == 1000 and ids == sorted(ids)
runs = next_ids(Next(count=1000, form=2)).runs
assert sum(run.count for run in runs) == 1000 and runs[0].first > ids[-1]
try:
    next_ids(Next(count=-1))
    raise SystemExit("a count of -1 was accepted")
except grpc.RpcError as error:
    assert error.code() == grpc.StatusCode.INVALID_ARGUMENT, error
    details = dict(error.trailing_metadata())["grpc-status-details-bin"]
    assert b"COUNT_OUT_OF_RANGE" in details, details

Grant, Batch = message("StreamRequest"), message("IdBatch")
stream = method("Stream", Grant, Batch, channel.stream_stream)
received = [i for batch in stream(iter([Grant(credit=20000), Grant(credit=5)])) for i in batch.ids]
assert len(set(received)) == 20005, len(received)

Check, Health = (
    GetMessageClass(pool.FindMessageTypeByName(f"grpc.health.v1.HealthCheck{name}"))
    for name in ("Request", "Response")
)
check = channel.unary_unary(
    "/grpc.health.v1.Health/Check",
    request_serializer=Check.SerializeToString,
    response_deserializer=Health.FromString,
)
assert check(Check(), timeout=5).status == 1
print("ok")
