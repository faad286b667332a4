"""Consumes rank files and publishes weights as prime-rl's trainer does, without training anything.

    python prime_rl_trainer.py OUTPUT_DIR RANKS MAX_STEPS SEQ_LEN

It decodes with msgspec into prime-rl's own struct, field by field, and notes every step that it takes in trained.jsonl.
While a file OUTPUT_DIR/hold_N is there it does not publish step N.
"""

import hashlib
import json
import sys
import time
from pathlib import Path
from typing import List, Optional

import msgspec

LOOK_S = 0.02


class RoutedExperts(msgspec.Struct, array_like=True, gc=False, omit_defaults=True):
    data: bytes
    shape: List[int]
    dtype: str


class ImageRef(msgspec.Struct, array_like=True, gc=False):
    url: str
    offset: int
    length: int


class Images(msgspec.Struct, array_like=True, gc=False):
    images: List[ImageRef]


class SamplingMask(msgspec.Struct, array_like=True, gc=False, omit_defaults=True):
    ids: bytes
    counts: bytes


class Segment(msgspec.Struct, array_like=True, gc=False, frozen=True):
    field: str
    file: str
    offset: int
    pos: int
    rows: int
    dtype: str
    shape: List[int]


class MicroBatch(msgspec.Struct, array_like=True, gc=False, omit_defaults=True):
    """The positions of prime-rl at 0f59b24."""

    input_ids: List[int]
    loss_mask: List[bool]
    advantages: List[float]
    inference_logprobs: List[float]
    position_ids: List[int]
    sequence_lengths: List[int]
    temperatures: List[float]
    env_names: List[str]
    seq_lens: List[int]
    ref_logprobs: Optional[List[float]] = None
    routed_experts: Optional[RoutedExperts] = None
    mm_refs: Optional[Images] = None
    mm_token_type_ids: Optional[List[int]] = None
    rl_weights: Optional[List[float]] = None
    ce_weights: Optional[List[float]] = None
    ref_kl_weights: Optional[List[float]] = None
    sampling_mask: Optional[SamplingMask] = None
    trace_ids: Optional[List[str]] = None
    branch_indices: Optional[List[int]] = None
    payload: Optional[List[Segment]] = None


DECODER = msgspec.msgpack.Decoder(type=List[MicroBatch])


def check(batch, seq_len):
    tokens = len(batch.input_ids)
    for name in ("loss_mask", "advantages", "inference_logprobs", "position_ids", "temperatures", "env_names"):
        assert len(getattr(batch, name)) == tokens, name
    assert sum(batch.sequence_lengths) == sum(batch.seq_lens) == tokens <= seq_len
    assert not any(advantage for advantage, trains in zip(batch.advantages, batch.loss_mask) if not trains)


def main():
    output_dir, ranks, max_steps, seq_len = Path(sys.argv[1]), *map(int, sys.argv[2:])
    publish(output_dir, 0)
    for step in range(1, max_steps + 1):
        paths = [output_dir / "rollouts" / f"step_{step}" / f"rank_{rank}.bin" for rank in range(ranks)]
        for path in paths:
            while not path.exists():
                time.sleep(LOOK_S)
        files = [path.read_bytes() for path in paths]
        shares = [DECODER.decode(data) for data in files]
        assert len({len(share) for share in shares}) == 1, "each rank has as many micro batches"
        for batch in sum(shares, []):
            check(batch, seq_len)
        taken = {
            "step": step,
            "rows": sorted(row for share in shares for batch in share for row in batch.trace_ids or []),
            "trained_tokens": sum(sum(batch.loss_mask) for share in shares for batch in share),
            "sha256": [hashlib.sha256(data).hexdigest() for data in files],
        }
        with open(output_dir / "trained.jsonl", "a") as file:
            file.write(json.dumps(taken) + "\n")
        while (output_dir / f"hold_{step}").exists():
            time.sleep(LOOK_S)
        publish(output_dir, step)


def publish(output_dir, step):
    folder = output_dir / "broadcasts" / f"step_{step}"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.safetensors").write_text(f"weights {step}")
    (folder / "STABLE").touch()


main()
