"""Virtual environments for environments of verifiers: which release one needs, and where it is installed.

A release before 0.4 and one from 0.4 on cannot share a virtual environment. Each environment gets its own, in the cache
folder, by its release and its contents. The Python that runs this module makes them.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import venv
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from email.parser import HeaderParser
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows has no such locks: make one virtual environment at a time there.
    fcntl = None  # type: ignore[assignment]

from .errors import ConfigError, RollcallError
from .hub import PREFIX

LEGACY = "verifiers>=0.1.5,<0.4"
"""What is installed for `load_environment`. pip chooses the newest that the environment allows, up to 0.3.1."""
V1 = "verifiers>=0.4,<0.5"
PRIME_HUB = "https://hub.primeintellect.ai"
WORKER_NEEDS = ("httpx>=0.27,<1", "aiohttp>=3.9,<4")
PACKAGES = ("rollcall", "rollcall_inline")

NAME = r"[A-Za-z0-9][A-Za-z0-9._-]*"

Say = Callable[[str], object]


@dataclass(frozen=True)
class Source:
    """Where an environment comes from. `requirement` is what pip gets. `name` is what verifiers calls it, if known.

    `hub` is what the platform's hub is asked for, instead of pip.
    """

    requirement: str
    name: str | None
    index: str | None = None
    hub: str | None = None


def source_of(environment: str) -> Source:
    """Reads a name of PyPI (with a version: `name==1.2`), a folder, `git+…`, or `owner/name@version` of Prime's hub.

    `hub:owner/name@version` is one of the platform's hub.
    """
    if environment.startswith(PREFIX):
        named = environment.removeprefix(PREFIX)
        if not re.fullmatch(r"[A-Za-z0-9._-]+/[A-Za-z0-9._-]+(@[^/]+)?", named):
            raise ConfigError(f"environment: {environment} is not hub:owner/name or hub:owner/name@version")
        return Source(environment, None, hub=named)
    if environment.startswith("git+") or re.match(r"^[a-z]+://", environment):
        return Source(environment, None)
    folder = Path(environment)
    if folder.is_dir():
        if not (folder / "pyproject.toml").is_file():
            raise ConfigError(f"environment: {environment} has no pyproject.toml: it is not a package")
        return Source(str(folder.resolve()), None)
    if environment.endswith(".whl") and folder.is_file():
        return Source(str(folder.resolve()), None)
    if environment.startswith((".", "/")) or environment.count("/") > 1:
        raise ConfigError(f"environment: there is no folder {environment}")
    owner, slash, rest = environment.rpartition("/")
    name, at, version = rest.partition("@")
    if not re.match(r"^[A-Za-z0-9][A-Za-z0-9._-]*(\[.*\])?([=<>!~].*)?$", name):
        raise ConfigError(f"environment: {environment} is not a package name, a folder, git+… or owner/name@version")
    pinned = f"{name}=={version}" if at and version != "latest" else name
    bare = re.split(r"[\[=<>!~]", name)[0]
    return Source(pinned, bare, f"{PRIME_HUB}/{owner}/simple/" if slash else None)


@dataclass(frozen=True)
class Wheel:
    """A built environment: its file, its distribution's name, and the API it is written for."""

    file: Path
    name: str
    legacy: bool
    requires: tuple[str, ...]


def build_wheel(source: Source, into: Path, say: Say) -> Wheel:
    """Builds or downloads the environment's wheel. This runs the build code of a source package."""
    say(f"getting {source.requirement}")
    command = ["wheel", "--no-deps", "--wheel-dir", str(into), source.requirement]
    _pip(sys.executable, command, source.index)
    files = list(into.glob("*.whl"))
    if len(files) != 1:
        raise RollcallError(f"{source.requirement} gave {len(files)} wheels instead of one")
    return read_wheel(files[0])


def read_wheel(file: Path) -> Wheel:
    """Reads what a wheel is without running it. Raises `ConfigError` if it is not an environment of verifiers."""
    try:
        archive = zipfile.ZipFile(file)
    except zipfile.BadZipFile:
        raise ConfigError(f"{file.name} is not a wheel: it is no zip file") from None
    with archive:
        names = archive.namelist()
        metadata = next((name for name in names if name.endswith(".dist-info/METADATA")), None)
        if metadata is None:
            raise ConfigError(f"{file.name} has no metadata: it is not a wheel")
        headers = HeaderParser().parsestr(archive.read(metadata).decode("utf-8", "replace"))
        sources = [archive.read(name).decode("utf-8", "replace") for name in names if name.endswith(".py")]
    requires = tuple(headers.get_all("Requires-Dist") or ())
    legacy = any(re.search(r"^\s*(async\s+)?def\s+load_environment\b", text, re.M) for text in sources)
    v1 = any(re.search(r"^\s*(import\s+verifiers\.v1|from\s+verifiers\.v1)\b", text, re.M) for text in sources)
    if not legacy and not v1:
        raise ConfigError(f"{file.name} is not an environment of verifiers: no load_environment, no verifiers.v1")
    name = str(headers["Name"])
    if not re.fullmatch(NAME, name):
        raise ConfigError(f"{file.name}: Name: {name} is not the name of a package")
    return Wheel(file, name, legacy, requires)


def release_of(wheel: Wheel, wanted: str | None) -> str:
    """The requirement for verifiers: the one that was asked for, or the one for the API of the environment."""
    if wanted is None:
        return LEGACY if wheel.legacy else V1
    if re.match(r"^[0-9]", wanted):
        return f"verifiers=={wanted}"
    if re.match(r"^[=<>!~]", wanted):
        return f"verifiers{wanted}"
    raise ConfigError(f"verifiers: {wanted} is not a version: 0.3.1, or a range such as >=0.4,<0.5")


def cache_folder() -> Path:
    given = os.environ.get("ROLLCALL_CACHE")
    return Path(given) if given else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rollcall"


def prepare(source: Source, wheel: Wheel, verifiers: str, say: Say) -> str:
    """The Python of a virtual environment that has the environment, its verifiers and this package."""
    with zipfile.ZipFile(wheel.file) as archive:
        content = sorted((each.filename, each.file_size, each.CRC) for each in archive.infolist())
    key = json.dumps([content, verifiers, sys.version_info[:2], WORKER_NEEDS])
    folder = cache_folder() / "venvs" / f"{wheel.name}-{hashlib.sha256(key.encode()).hexdigest()[:16]}"
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    with _locked(folder.with_suffix(".lock")):
        if not (folder / "ready").exists():
            shutil.rmtree(folder, ignore_errors=True)
            say(f"making a virtual environment with {verifiers} in {folder}: this takes some minutes, once")
            venv.create(folder, with_pip=True, symlinks=os.name != "nt")
            _pip(str(python), ["install", "--no-compile", str(wheel.file), verifiers, *WORKER_NEEDS], source.index)
            (folder / "ready").touch()
    return str(python)


def package_path() -> str:
    """A folder with only this package, for the path of the worker: the same code on both sides."""
    here = Path(__file__).resolve().parent.parent
    files = sorted(file for package in PACKAGES for file in (here / package).rglob("*.py"))
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16]
    target = cache_folder() / "packages" / digest
    with _locked(target.with_suffix(".lock")):
        if not (target / "ready").exists():
            for package in PACKAGES:
                ignore = shutil.ignore_patterns("__pycache__")
                shutil.copytree(here / package, target / package, ignore=ignore, dirs_exist_ok=True)
            (target / "ready").touch()
    return str(target)


@contextmanager
def _locked(file: Path) -> Iterator[None]:
    """Lets one process at a time make a folder of the cache. The system releases the lock of a process that ends."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w") as lock:
        if fcntl is not None:
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _pip(python: str, arguments: Sequence[str], index: str | None) -> None:
    """Runs pip. Raises `RollcallError` with the end of its output."""
    command = [python, "-m", "pip", "--disable-pip-version-check", "--quiet", *arguments]
    if index is not None:
        command += ["--extra-index-url", index]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        raise RollcallError(f"pip {arguments[0]} failed:\n{done.stdout.strip()[-3000:]}")
