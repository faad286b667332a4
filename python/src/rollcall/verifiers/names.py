"""How environments are named, and which API of verifiers an installed one is written for."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
from types import ModuleType
from typing import Literal

from ..errors import ConfigError

Api = Literal["v1", "legacy"]


def bare_name(environment: str) -> str:
    """`owner/name@version` → `name`."""
    return environment.rsplit("/", 1)[-1].split("@", 1)[0]


def module_name(environment: str) -> str:
    return bare_name(environment).replace("-", "_").replace(".", "_").lower()


def release() -> tuple[str, tuple[int, ...]]:
    """The installed release of verifiers. Raises `ConfigError` without one."""
    try:
        text = importlib.metadata.version("verifiers")
    except importlib.metadata.PackageNotFoundError:
        raise ConfigError("verifiers is not installed here: install the environment into this Python") from None
    digits = []
    for part in text.split(".")[:3]:
        number = "".join(each for each in part if each.isdigit())
        digits.append(int(number or 0))
    return text, tuple(digits)


def load_module(environment: str) -> ModuleType:
    """The environment's module. Raises `ConfigError` if it is not installed."""
    name = module_name(environment)
    for candidate in (f"verifiers.v1.tasksets.{name}", name):
        try:
            if importlib.util.find_spec(candidate) is not None:
                return importlib.import_module(candidate)
        except ModuleNotFoundError as missing:
            if missing.name is None or not candidate.startswith(missing.name):
                raise
    raise ConfigError(f"environment: {environment} is not installed here: there is no module {name}")


def api_of(environment: str) -> Api:
    """`load_environment` makes an environment one of the legacy API."""
    text, numbers = release()
    if hasattr(load_module(environment), "load_environment"):
        if numbers >= (0, 4):
            raise ConfigError(
                f"{environment} uses load_environment, which verifiers {text} lacks: install verifiers<=0.3.1"
            )
        return "legacy"
    if numbers < (0, 4):
        raise ConfigError(f"{environment} is written for verifiers 0.4 or later, and {text} is installed")
    return "v1"
