"""Consumes rank files and publishes weights as prime-rl's trainer does, without training anything.

    python prime_rl_trainer.py OUTPUT_DIR PROTOCOL RANKS MAX_STEPS SEQ_LEN PAD_TO START_VERSION

PROTOCOL is one of prime-rl's three file protocols, each written again here from the files that define it:

- handshake: src/prime_rl/transports/weights/base.py at 114f3ca (`WeightSender.broadcast`, `_clean`, and
  `prune_broadcasts_beyond`), batch/filesystem.py at 6bc6e99 (`batches/step_N/rank_R.bin`), and trainer/rl/train.py,
  which broadcasts the version it starts from before it waits for a batch.
- handshake-rollouts: the same with `rollouts/step_N`, as from pull request 3357 (2026-08-23) until 3444 (2026-09-01).
- stable: transports/weights/filesystem.py and rollouts/filesystem.py at 559b447 (2026-08-21).

It decodes with msgspec into prime-rl's own struct, field by field, checks what context parallelism requires, and writes
every step to trained.jsonl. While a file OUTPUT_DIR/hold_N_STAGE exists it does not leave that stage of step N: trained
(before the offer), accepted (before .started), started (before .finished).
"""

import hashlib
import json
import shutil
import sys
import time
from pathlib import Path
from typing import List, Optional

import msgspec

LOOK_S = 0.02
SENDER_READY, RECEIVER_READY, STARTED, FINISHED = ".sender_ready", ".receiver_ready", ".started", ".finished"
STABLE = "STABLE"


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
    """The fields in the order of prime-rl at 0f59b24."""

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


def check(batch, seq_len, pad_to):
    tokens = len(batch.input_ids)
    for name in ("loss_mask", "advantages", "inference_logprobs", "position_ids", "temperatures", "env_names"):
        assert len(getattr(batch, name)) == tokens, name
    # `shard_for_cp` of prime_rl/utils/cp.py raises ValueError otherwise.
    assert tokens % pad_to == 0, "the sequence is divided among the ranks of context parallelism"
    assert sum(batch.sequence_lengths) == sum(batch.seq_lens) == tokens <= seq_len
    assert not any(advantage for advantage, trains in zip(batch.advantages, batch.loss_mask) if not trains)


class Trainer:
    def __init__(self, output_dir, protocol):
        self.output_dir, self.protocol = output_dir, protocol
        self.batches = output_dir / ("batches" if protocol == "handshake" else "rollouts")

    def publish(self, step):
        folder = self.output_dir / "broadcasts" / f"step_{step}"
        if self.protocol == "stable":
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "model.safetensors").write_text(f"weights {step}")
            (folder / STABLE).touch()
            return
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        (folder / SENDER_READY).touch()
        while not (folder / RECEIVER_READY).exists():
            time.sleep(LOOK_S)
        self.hold(step, "accepted")
        (folder / STARTED).touch()
        self.hold(step, "started")
        (folder / "model.safetensors").write_text(f"weights {step}")
        (folder / FINISHED).touch()
        for old in self.broadcasts():
            if old < step - 1:
                shutil.rmtree(folder.parent / f"step_{old}", ignore_errors=True)

    def broadcasts(self):
        return [int(path.name.split("_")[-1]) for path in (self.output_dir / "broadcasts").glob("step_*")]

    def prune_beyond(self, step):
        for later in self.broadcasts():
            if self.protocol != "stable" and later > step:
                shutil.rmtree(self.output_dir / "broadcasts" / f"step_{later}", ignore_errors=True)

    def hold(self, step, stage):
        while (self.output_dir / f"hold_{step}_{stage}").exists():
            time.sleep(LOOK_S)

    def train(self, step, ranks, seq_len, pad_to):
        paths = [self.batches / f"step_{step}" / f"rank_{rank}.bin" for rank in range(ranks)]
        for path in paths:
            while not path.exists():
                time.sleep(LOOK_S)
        files = [path.read_bytes() for path in paths]
        shares = [DECODER.decode(data) for data in files]
        assert len({len(share) for share in shares}) == 1, "each rank has as many micro batches"
        for batch in sum(shares, []):
            check(batch, seq_len, pad_to)
        taken = {
            "step": step,
            "rows": sorted(row for share in shares for batch in share for row in batch.trace_ids or []),
            "trained_tokens": sum(sum(batch.loss_mask) for share in shares for batch in share),
            "sha256": [hashlib.sha256(data).hexdigest() for data in files],
        }
        with open(self.output_dir / "trained.jsonl", "a") as file:
            file.write(json.dumps(taken) + "\n")


def main():
    output_dir, protocol = Path(sys.argv[1]), sys.argv[2]
    ranks, max_steps, seq_len, pad_to, start_version = map(int, sys.argv[3:])
    trainer = Trainer(output_dir, protocol)
    trainer.prune_beyond(start_version)
    trainer.publish(start_version)
    for step in range(start_version + 1, max_steps + 1):
        trainer.train(step, ranks, seq_len, pad_to)
        trainer.hold(step, "trained")
        trainer.publish(step)


if __name__ == "__main__":
    main()
