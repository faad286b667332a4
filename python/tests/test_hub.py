"""Wheels of the platform's hub: which version is meant, and what is refused."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import httpx
import pytest

from rollcall import hub
from rollcall.errors import ConfigError, RollcallError
from rollcall.transport import Settings, Transport
from rollcall.venvs import source_of

WHEEL = b"the bytes of a wheel"


def version(**changes: Any) -> dict[str, Any]:
    digest = f"sha256:{hashlib.sha256(WHEEL).hexdigest()}"
    package = {"file": "some_env-1.0-py3-none-any.whl", "bytes": len(WHEEL)}
    one = {"id": "alice/some-env@1.0.0", "kind": "python", "digest": digest, "package": package}
    return one | {"yanked": None, "deprecated": None} | changes


def hub_of(published: dict[str, Any] | None, wheel: bytes, seen: list[httpx.Request]) -> Transport:
    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        if request.url.path.endswith("/package"):
            return httpx.Response(200, content=wheel)
        return httpx.Response(200, json={"published": published})

    settings = Settings.of("http://platform.test", "rk_secret")
    return Transport(settings, httpx.Client(transport=httpx.MockTransport(answer)))


def test_a_name_of_the_platforms_hub_cannot_be_one_of_primes_hub() -> None:
    source = source_of("hub:alice/some-env@^1.0")
    assert (source.hub, source.index, source.name) == ("alice/some-env@^1.0", None, None)
    assert source_of("alice/some-env").hub is None
    for wrong in ("hub:some-env", "hub:", "hub:a/b/c", "hub:a/b@"):
        with pytest.raises(ConfigError, match="is not hub:owner/name"):
            source_of(wrong)


def test_the_wheel_of_the_digest_is_stored_under_its_own_name(tmp_path: Path) -> None:
    seen: list[httpx.Request] = []
    transport = hub_of(version(), WHEEL, seen)
    published = hub.find(transport, "alice/some-env@^1")
    file = hub.download(transport, published, tmp_path)
    assert (file.name, file.read_bytes()) == ("some_env-1.0-py3-none-any.whl", WHEEL)
    assert [request.url.raw_path for request in seen] == [
        b"/v1/environments/alice%2Fsome-env%40%5E1",
        b"/v1/environments/alice%2Fsome-env%401.0.0/package",
    ]
    assert {request.headers["authorization"] for request in seen} == {"Bearer rk_secret"}


@pytest.mark.parametrize("wheel", [b"other bytes than that", WHEEL + b"!", WHEEL * 1000, b""])
def test_other_bytes_than_those_of_the_digest_are_refused(wheel: bytes, tmp_path: Path) -> None:
    transport = hub_of(version(), wheel, [])
    with pytest.raises(RollcallError, match="is not the wheel of the digest"):
        hub.download(transport, hub.find(transport, "alice/some-env"), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_what_is_not_a_wheel_is_refused_before_it_is_downloaded() -> None:
    refused: list[tuple[dict[str, Any] | None, str]] = [
        (None, "is not a Python environment"),
        (version(kind="javascript"), "is not a Python environment"),
        (version(package={"file": "../evil.whl", "bytes": 1}), "no file name and digest"),
        (version(digest="sha256:12"), "no file name and digest"),
        (version(package={"file": "a-1-py3-none-any.whl", "bytes": 1 << 40}), "bytes, more than"),
    ]
    for published, why in refused:
        seen: list[httpx.Request] = []
        with pytest.raises(RollcallError, match=why):
            hub.find(hub_of(published, WHEEL, seen), "alice/some-env")
        assert len(seen) == 1


def test_a_yanked_or_deprecated_version_is_used_with_a_notice() -> None:
    yanked = version(yanked={"reason": "it counts wrong answers", "at": 1})
    assert hub.find(hub_of(yanked, WHEEL, []), "a/b@1.0.0").notice == (
        "alice/some-env@1.0.0 was yanked: it counts wrong answers"
    )
    deprecated = version(deprecated="use other-env")
    assert hub.find(hub_of(deprecated, WHEEL, []), "a/b").notice == (
        "alice/some-env@1.0.0 is deprecated: use other-env"
    )
