"""Read by Schemathesis: bodies of lines, which it neither writes nor reads by itself."""

import json

import schemathesis


@schemathesis.serializer("application/jsonl")
def write_lines(_context, line):
    """Two lines of what the document says of one."""
    if isinstance(line, bytes):
        return line
    return b"".join(json.dumps(line).encode() + b"\n" for _ in range(2))


@schemathesis.deserializer("application/jsonl")
def read_lines(_context, response):
    return [json.loads(line) for line in response.text.split("\n") if line != ""]
