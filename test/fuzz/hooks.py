"""Loaded by Schemathesis: writes and reads bodies of lines, which it does not support itself."""

import json

import schemathesis


@schemathesis.serializer("application/jsonl")
def write_lines(_context, line):
    """Two lines; the document describes one."""
    if isinstance(line, bytes):
        return line
    return b"".join(json.dumps(line).encode() + b"\n" for _ in range(2))


@schemathesis.deserializer("application/jsonl")
def read_lines(_context, response):
    return [json.loads(line) for line in response.text.split("\n") if line != ""]
