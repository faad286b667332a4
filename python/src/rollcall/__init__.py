"""Rollcall in Python: a client, an agent worker, and a worker for verifiers environments."""

from .errors import ApiError, ConfigError, RollcallError, RunFailed

__all__ = ["ApiError", "ConfigError", "RollcallError", "RunFailed", "__version__"]
__version__ = "0.2.0"
