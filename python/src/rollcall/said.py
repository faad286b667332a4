"""What commands print for a person, apart from their result."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from .errors import ConfigError


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def json_object(name: str, text: str) -> dict[str, Any]:
    """An argument that is a JSON object, or `@FILE` with one. Raises `ConfigError` with its name."""
    if text.startswith("@"):
        try:
            text = Path(text[1:]).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"{name}: {text[1:]} cannot be read: {error}") from None
    try:
        value = json.loads(text)
    except ValueError as error:
        raise ConfigError(f"{name}: is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise ConfigError(f"{name}: must be a JSON object")
    return value
