"""Rows of training samples (`rl.sample/1`) with their credits, as lists or as numpy arrays."""

from __future__ import annotations

import gzip
import hashlib
import importlib
import io
import json
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .errors import ConfigError, RollcallError
from .msgpack import unpack_all

FORMATS = {"int32": "i", "uint8": "B", "float32": "f", "uint16": "H", "float64": "d", "int64": "q"}
MAX_ROWS_BYTES = 4 << 30
"""Bytes of one object when it is inflated. A group of rollouts has some megabytes."""


@dataclass(frozen=True)
class Sample:
    """One branch of one rollout: its whole token sequence, and the reward and the advantage of its credit.

    The arrays have one length; `mask` is 1 where the policy sampled the token, and is trained on. `weight` is that of
    each trained token in the loss. `rest` has the other members of the row.
    """

    sample_id: str
    rollout_id: str
    group_id: str
    token_ids: Sequence[int]
    mask: Sequence[int]
    logprobs: Sequence[float]
    reward: float | None
    advantage: float | None
    weight: float = 1.0
    rest: Mapping[str, Any] = field(default_factory=dict)

    def numpy(self) -> dict[str, Any]:
        """`token_ids` int32, `mask` uint8, `logprobs`, `advantages` and `weights` float32, all of the same length.

        `advantages` is the advantage where the mask is 1, `weights` the weight in the loss there. Raises `ConfigError` if numpy is not installed or the run
        computes no advantages.
        """
        try:
            numpy: Any = importlib.import_module("numpy")
        except ImportError:
            raise ConfigError("numpy is not installed: pip install numpy") from None
        if self.advantage is None:
            raise ConfigError(f"{self.sample_id}: advantage: is null: compute it from the rewards")
        mask = numpy.asarray(self.mask, numpy.uint8)
        return {
            "token_ids": numpy.asarray(self.token_ids, numpy.int32),
            "mask": mask,
            "logprobs": numpy.asarray(self.logprobs, numpy.float32),
            "advantages": mask * numpy.float32(self.advantage),
            "weights": mask * numpy.float32(self.weight),
        }


class DigestMismatch(RollcallError):
    """What came is not what its digest says."""


def check_digest(data: bytes, sha256: str) -> bytes:
    if hashlib.sha256(data).hexdigest() != sha256:
        raise DigestMismatch(f"{len(data)} bytes are not those of the digest {sha256}")
    return data


def digest_of(manifest: Mapping[str, Any]) -> str:
    """The digest of a manifest: over the raw digests of its objects in order, then that of the credits."""
    parts = [each["sha256"] for each in manifest["objects"]]
    if manifest.get("credits"):
        parts.append(manifest["credits"]["sha256"])
    return hashlib.sha256(b"".join(bytes.fromhex(each) for each in parts)).hexdigest()


def rows_of(data: bytes, form: str) -> list[dict[str, Any]]:
    """The rows of one object, in either encoding."""
    text = _inflate(data)
    if "msgpack" in form:
        return [_plain(row) for row in unpack_all(text)]
    return [json.loads(line) for line in text.splitlines() if line]


def _inflate(data: bytes) -> bytes:
    with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
        text = file.read(MAX_ROWS_BYTES + 1)
    if len(text) > MAX_ROWS_BYTES:
        raise RollcallError(f"an object has more than {MAX_ROWS_BYTES} bytes")
    return text


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: _array(value) if isinstance(value, dict) and "dtype" in value else value for name, value in row.items()
    }


def _array(value: Mapping[str, Any]) -> list[Any]:
    """`{dtype, shape, data}` of one dimension as a list; its bytes are little-endian."""
    form = FORMATS.get(value["dtype"])
    if form is None or len(value["shape"]) != 1:
        raise RollcallError(f"an array of {value['dtype']} and shape {value['shape']} is not supported")
    return list(struct.unpack(f"<{value['shape'][0]}{form}", value["data"]))


def samples_of(rows: Iterable[Mapping[str, Any]], credits: Iterable[Mapping[str, Any]]) -> list[Sample]:
    """Rows with their credits. A row without a credit is not trained on, and is left out."""
    by_id = {credit["sample_id"]: credit for credit in credits}
    known = ("sample_id", "rollout_id", "group_id", "token_ids", "mask", "logprobs")
    samples = []
    for row in rows:
        credit = by_id.get(row["sample_id"])
        if credit is None:
            continue
        rest = {name: value for name, value in row.items() if name not in known}
        parts = {name: row[name] for name in known}
        figures = {"reward": credit["reward"], "advantage": credit["advantage"], "weight": credit.get("weight", 1.0)}
        samples.append(Sample(**parts, **figures, rest=rest))
    return samples
