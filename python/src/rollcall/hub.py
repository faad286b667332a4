"""Wheels of environments that the platform publishes: `hub:owner/name@version`."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .calls import json_of, path
from .errors import ConfigError, RollcallError
from .transport import Call, Transport

PREFIX = "hub:"
MOST_BYTES = 64 << 20
"""Bytes of a wheel. The platform's own limit is lower."""
DOWNLOAD_S = 600.0


@dataclass(frozen=True)
class Published:
    """A version of a Python environment at the platform. `id` is `owner/name@version`, `notice` what to know of it."""

    id: str
    file: str
    sha256: str
    size: int
    notice: str | None


def find(transport: Transport, named: str) -> Published:
    """The version that `owner/name`, with a version, range or tag, names. Raises `ConfigError` if it is no wheel."""
    view = json_of(transport.send(Call("GET", path("environments", named))))
    version: Mapping[str, Any] | None = view.get("published")
    if version is None or version.get("kind") != "python":
        raise ConfigError(f"environment: {named} is not a Python environment: run it without --python")
    file, size = version["package"].get("file", ""), version["package"]["bytes"]
    digest = re.fullmatch(r"sha256:([0-9a-f]{64})", version["digest"])
    if not re.fullmatch(r"[\w.!+-]+\.whl", file) or digest is None:
        raise RollcallError(f"{version['id']}: the platform gave no file name and digest of a wheel")
    if size > MOST_BYTES:
        raise RollcallError(f"{version['id']} has {size} bytes, more than {MOST_BYTES}")
    return Published(version["id"], file, digest[1], size, _notice(version))


def _notice(version: Mapping[str, Any]) -> str | None:
    if version.get("yanked"):
        return f"{version['id']} was yanked: {version['yanked']['reason']}"
    return f"{version['id']} is deprecated: {version['deprecated']}" if version.get("deprecated") else None


def download(transport: Transport, published: Published, into: Path) -> Path:
    """Stores the wheel. Raises `RollcallError` if it is not the one of the digest.

    pip gets the file, so the key is in no command line, log or configuration of pip.
    """
    content = bytearray()
    call = Call("GET", path("environments", published.id, "package"), timeout=DOWNLOAD_S)
    with transport.stream(call) as reply:
        for piece in reply.iter_bytes():
            content += piece
            if len(content) > published.size:
                break
    if hashlib.sha256(content).hexdigest() != published.sha256:
        raise RollcallError(f"{published.id}: what came is not the wheel of the digest sha256:{published.sha256}")
    file = into / published.file
    file.write_bytes(content)
    return file
