"""What several test files share."""

from __future__ import annotations

import os
from pathlib import Path

import httpx
import pytest

POLICY = os.environ.get("ROLLCALL_TEST_POLICY_URL", "")
BASE_WEIGHTS = Path(__file__).parents[2] / "packages/policy/base-weights.bin"


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder for `ROLLCALL_CACHE`, so that an environment is installed once: `ROLLCALL_TEST_CACHE`, or a new one."""
    return os.environ.get("ROLLCALL_TEST_CACHE") or str(tmp_path_factory.mktemp("cache"))


@pytest.fixture
def policy() -> str:
    """The policy server with the weights that it started with, as `rollcall train` of npm begins.

    A server that was trained names the version of that training, which a new run has not published: it would train
    on none of its rollouts.
    """
    if not POLICY:
        pytest.skip("ROLLCALL_TEST_POLICY_URL is not set")
    headers = {"x-weight-version": "base", "content-type": "application/octet-stream"}
    address = POLICY.removesuffix("/v1") + "/update_weights"
    httpx.post(address, content=BASE_WEIGHTS.read_bytes(), headers=headers).raise_for_status()
    return POLICY
