"""Reads MessagePack, as much of it as rows of samples use: everything but extension types and timestamps."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

MAX_DEPTH = 32
NUMBERS = {
    0xCA: ">f",
    0xCB: ">d",
    0xCC: ">B",
    0xCD: ">H",
    0xCE: ">I",
    0xCF: ">Q",
    0xD0: ">b",
    0xD1: ">h",
    0xD2: ">i",
    0xD3: ">q",
}
SIZES = {0xC4: ">B", 0xC5: ">H", 0xC6: ">I", 0xD9: ">B", 0xDA: ">H", 0xDB: ">I", 0xDC: ">H", 0xDD: ">I"}
SIZES |= {0xDE: ">H", 0xDF: ">I"}
CONSTANTS = {0xC0: None, 0xC2: False, 0xC3: True}


def unpack_all(data: bytes) -> Iterator[Any]:
    """The values that follow one another in `data`. Raises `ValueError` if it is cut off or not MessagePack."""
    reader = _Reader(data)
    while reader.at < len(data):
        try:
            yield reader.value(0)
        except struct.error:
            raise ValueError("the rows are cut off") from None


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self.at = 0

    def value(self, depth: int) -> Any:
        if depth > MAX_DEPTH:
            raise ValueError(f"the rows are nested deeper than {MAX_DEPTH}")
        code = self._number(">B")
        if code in CONSTANTS:
            return CONSTANTS[code]
        if code in NUMBERS:
            return self._number(NUMBERS[code])
        if code < 0x80 or code >= 0xE0:
            return code if code < 0x80 else code - 0x100
        if code < 0x90:
            return self._map(code & 0x0F, depth)
        if code < 0xA0:
            return self._array(code & 0x0F, depth)
        if code < 0xC0:
            return self._bytes(code & 0x1F).decode()
        if code not in SIZES:
            raise ValueError(f"the byte {code:#x} is not a type that rows have")
        size = int(self._number(SIZES[code]))
        if code in (0xC4, 0xC5, 0xC6):
            return self._bytes(size)
        if code in (0xD9, 0xDA, 0xDB):
            return self._bytes(size).decode()
        return self._array(size, depth) if code in (0xDC, 0xDD) else self._map(size, depth)

    def _number(self, form: str) -> Any:
        (number,) = struct.unpack_from(form, self._data, self.at)
        self.at += struct.calcsize(form)
        return number

    def _bytes(self, size: int) -> bytes:
        end = self.at + size
        if end > len(self._data):
            raise ValueError("the rows are cut off")
        part, self.at = self._data[self.at : end], end
        return part

    def _array(self, size: int, depth: int) -> list[Any]:
        return [self.value(depth + 1) for _ in range(size)]

    def _map(self, size: int, depth: int) -> dict[Any, Any]:
        return {self.value(depth + 1): self.value(depth + 1) for _ in range(size)}
