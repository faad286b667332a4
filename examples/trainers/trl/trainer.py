"""Hugging Face TRL's AsyncGRPOTrainer on the batches of a Rollcall run: `python trainer.py --help`.

Two adapters stand where TRL would have its own. `RolloutWorker` reads batches and hands their rows to TRL;
`WeightTransfer` writes the weights of each step to a directory, acknowledges the batch that made them and says where
they are. The run's fleet has the engines load them. README.md in this folder has more.
"""

import argparse
import json
import os
import queue
import shutil
import sys
import threading
import time
import urllib.error
import urllib.request

import numpy as np
import torch
from datasets import Dataset
from safetensors.torch import save_file
from trl.experimental.async_grpo import AsyncGRPOConfig, AsyncGRPOTrainer, async_grpo_trainer, packing
from trl.experimental.async_grpo.async_rollout_worker import RolloutSample

ME = {"trainer_id": "trl", "kind": "examples/trainers/trl", "protocol": "rl.batch/1"}


class Run:
    """The run's side of docs/training.md. Whatever is asked here may be asked again."""

    def __init__(self, url, run, token):
        self.root, self.token = f"{url}/v1", token
        self.path, self.epoch, self.leased = f"runs/{run}", 0, None
        self.lock = threading.Lock()  # one thread trains, the other keeps the lease alive

    def ask(self, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        headers = {"authorization": f"Bearer {self.token}", "content-type": "application/json"}
        while True:
            try:
                asked = urllib.request.Request(f"{self.root}/{path}", data, headers)
                with urllib.request.urlopen(asked, timeout=120) as reply:
                    return reply.status, reply.headers, reply.read()
            except urllib.error.HTTPError as error:
                if error.code < 500:
                    return error.code, error.headers, error.read()
            except OSError:
                pass
            time.sleep(1)

    def say(self, path, body):
        status, _, reply = self.ask(path, body)
        if status >= 400:
            raise RuntimeError(f"{path}: {status} {reply.decode()}")
        return json.loads(reply) if reply else None

    def register(self, reset_to):
        asked = {**ME, "version": 0} if reset_to is None else {**ME, "version": 0, "reset_to": reset_to}
        registered = self.say(f"{self.path}/trainer/register", asked)
        if registered["next_step"] != 1:
            raise RuntimeError(f"the next batch is {registered['next_step']}, and this begins at 1: give --reset")
        self.epoch = registered["epoch"]

    def read(self, step):
        """Its rows and their digest, leased or not; None where it is not there yet."""
        status, headers, reply = self.ask(f"{self.path}/batches/{step}?format=trl&max_wait_s=20")
        if status in (404, 409):  # nothing yet; void, and to be cut anew
            return None
        if status != 200:
            raise RuntimeError(f"batch {step}: {status} {reply.decode()}")
        return [json.loads(line) for line in reply.splitlines()], headers["x-batch-sha256"]

    def lease(self, step):
        asked = {"trainer_id": ME["trainer_id"], "epoch": self.epoch, "want_step": step, "max_wait_s": 30}
        leased = None
        while leased is None:
            leased = self.say(f"{self.path}/trainer/lease", asked)
        with self.lock:
            self.leased = leased
        return leased["manifest"]

    def beat(self):
        with self.lock:
            if self.leased is not None:
                lease = self.leased["lease"]
                self.say(f"leases/{lease['id']}/heartbeat", {"token": lease["token"], "epoch": self.epoch})

    def acknowledge(self, sha256, metrics, location):
        """In the same write its weights are published. `sha256`: of the batch that was trained."""
        with self.lock:
            lease, manifest = self.leased["lease"], self.leased["manifest"]
            if sha256 != manifest["sha256"]:
                raise RuntimeError(f"batch {manifest['step']} is another one than was read: the run went back")
            named = {"batch_id": manifest["batch_id"], "sha256": manifest["sha256"], "epoch": self.epoch}
            made = {"produced_version": manifest["step"], "published": {"location": location}, "metrics": metrics}
            self.say(f"leases/{lease['id']}/ack", {"token": lease["token"], **named, **made})
            self.leased = None


class RolloutWorker:
    """TRL's RolloutWorkerProtocol: what it trains are the run's batches, which are read ahead of their leases."""

    def __init__(self, run, steps, rows, pad):
        self.run, self.steps, self.rows, self.pad = run, steps, rows, pad
        self.rollout_buffer, self.metrics_queue = queue.Queue(), queue.Queue()
        self.read, self.failed = {}, None
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self.feed, daemon=True)

    def start(self):
        self.thread.start()

    def stop(self):
        self.stopping.set()

    def update_model_version(self, model_version):
        """Rows say which version sampled them: ours + 1, as TRL counts."""

    def check_health(self, stale_after_s):
        if self.failed is not None:
            raise RuntimeError("the run cannot be read") from self.failed

    def feed(self):
        try:
            step = 1
            while not self.stopping.is_set():
                batch = self.run.read(step) if step <= self.steps else None
                self.run.beat()
                if batch is not None:
                    self.put(step, *batch)
                    step += 1
                elif step > self.steps:
                    self.stopping.wait(20)
        except Exception as error:  # whatever it is, TRL raises it from check_health
            self.failed = error

    def put(self, step, lines, sha256):
        if not 0 < len(lines) <= self.rows:
            raise RuntimeError(f"batch {step} has {len(lines)} rows: --rows {self.rows} is to hold any of the run")
        rewards = [line["metrics"]["reward"] for line in lines if "reward" in line["metrics"]]
        self.read[step] = {"sha256": sha256, "rows": len(lines), "reward": float(np.mean(rewards))}
        # TRL asks for as many rows in each step, and for the next step's before it trains: blanks make up for both.
        blanks = self.rows - len(lines) + (self.rows if step == self.steps else 0)
        for line in [*lines, *[self.blank(step)] * blanks]:
            typed = {
                "input_ids": np.asarray(line["input_ids"], dtype=np.int64),
                "completion_mask": np.asarray(line["completion_mask"], dtype=np.int64),
                "old_log_probs": np.asarray(line["old_log_probs"], dtype=np.float32),
            }
            self.rollout_buffer.put(RolloutSample(**{**line, **typed, "enqueued_at": time.time()}))

    def blank(self, step):
        """A row that trains nothing."""
        arrays = {"input_ids": [self.pad] * 2, "completion_mask": [0, 0], "old_log_probs": [0, 0]}
        plain = {"advantage": 0, "model_version": step, "group_id": 0, "metrics": {}}
        return {"prompt": [], "completion": [], **plain, **arrays}


class WeightTransfer:
    """TRL's WeightTransferProtocol: each step's weights become a directory, which the run's fleet loads."""

    def __init__(self, run, worker, options):
        self.run, self.worker, self.options = run, worker, options
        self.step, self.trainer = 0, None

    def init_weight_transfer(self):
        self.run.register(0 if self.options.reset else None)

    def pause(self):
        """The fleet pauses its replicas, one after another."""

    def send_weights(self, iterator):
        """Called before the first step, and after each."""
        location = write_weights(iterator, self.options.model, os.path.join(self.options.weights, str(self.step)))
        if self.step == 0:
            said = {"version": 0, "state": "published", "epoch": self.run.epoch, "location": location}
            self.run.say(f"{self.run.path}/weight-versions", said)
        else:
            read, metrics = self.worker.read.pop(self.step), self.trainer.take_metrics()
            self.run.acknowledge(read["sha256"], metrics, location)
            said = {"step": self.step, "rows": read["rows"], "reward": read["reward"], **metrics}
            print(json.dumps(said), flush=True)
        if self.step < self.options.steps:
            self.lease(self.step + 1)

    def lease(self, step):
        manifest = self.run.lease(step)
        temperature = manifest["sampling"].get("temperature", 1)
        if temperature != self.options.temperature:
            raise RuntimeError(f"sampled at temperature {temperature}: give --temperature {temperature}")

    def resume(self):
        """TRL counts a version up after this, and so does this."""
        self.step += 1

    def destroy(self):
        pass


def write_weights(tensors, model, folder):
    """A checkpoint that an engine can load, whole or not there. `model`: the directory of the one it began with."""
    folder = os.path.abspath(folder)
    aside = f"{folder}.part"
    for old in (aside, folder):
        shutil.rmtree(old, ignore_errors=True)
    weights = shutil.ignore_patterns("*.safetensors*", "*.bin*", "*.pt")
    shutil.copytree(model, aside, ignore=weights)
    held = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors}
    save_file(held, os.path.join(aside, "model.safetensors"), metadata={"format": "pt"})
    os.rename(aside, folder)
    return folder


class Trainer(AsyncGRPOTrainer):
    """As it is, but that it can say what its last step came to."""

    loss, began = 0.0, time.time()

    def training_step(self, *given):
        if self.loss == 0.0:
            self.waited, self.training_since = time.time() - self.began, time.time()
        loss = super().training_step(*given)
        self.loss += loss.item()
        return loss

    def take_metrics(self):
        held = self._metrics["train"]
        means = {key: float(np.mean(held[key])) for key in ("ratio", "kl", "entropy", "clip_ratio/region_mean")}
        times = {"wait_s": round(self.waited, 3), "train_s": round(time.time() - self.training_since, 3)}
        taken = {"loss": self.loss, **means, **times}
        self.loss, self.began = 0.0, time.time()
        return taken


def use_sdpa():
    """TRL's attention is a CUDA kernel. The same by torch: each piece of a row attends to the path that leads to it."""

    def attention(module, query, key, value, mask, *, tree_kv_index, tree_cu_seqlens_q, tree_cu_seqlens_k, **more):
        if more.get("sliding_window") or more.get("softcap"):
            raise RuntimeError("without a GPU: no sliding window and no soft cap")
        pieces, of_q, of_k = [], tree_cu_seqlens_q.tolist(), tree_cu_seqlens_k.tolist()
        for at in range(len(of_q) - 1):
            asks, path = query[:, :, of_q[at] : of_q[at + 1]], tree_kv_index[of_k[at] : of_k[at + 1]]
            sees = torch.ones(asks.shape[2], len(path), dtype=torch.bool).tril(len(path) - asks.shape[2])
            of_path = {"scale": more.get("scaling"), "attn_mask": sees, "enable_gqa": True}
            scaled = torch.nn.functional.scaled_dot_product_attention
            pieces.append(scaled(asks, key[:, :, path], value[:, :, path], **of_path))
        return torch.cat(pieces, 2).transpose(1, 2), None

    packing.tree_attention = attention
    async_grpo_trainer.get_peak_flops_per_device = lambda *_: None  # asks CUDA for the device's name


def read_options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--url", default=os.environ.get("ROLLCALL_URL", "http://127.0.0.1:8787"))
    add("--run", required=True)
    add("--token", default=os.environ.get("ROLLCALL_TRAINER_TOKEN"), help="$ROLLCALL_TRAINER_TOKEN")
    add("--model", required=True, help="directory of the model that the engines were started with")
    add("--weights", required=True, help="directory for the weights of each step, which the engines read as well")
    add("--steps", type=int, required=True, help="the run's max_steps")
    add("--rows", type=int, required=True, help="as many rows as a batch of the run may have")
    add("--temperature", type=float, default=1.0, help="that of the run's sampling (1)")
    add("--learning-rate", type=float, default=1e-6)
    add("--reset", action="store_true", help="the run has been trained before: have it go back to version 0")
    options = parser.parse_args()
    if not options.token:
        parser.error("give --token, or $ROLLCALL_TRAINER_TOKEN")
    return options


def main():
    options = read_options()
    on_cpu = not torch.cuda.is_available()
    if on_cpu:
        use_sdpa()
    config = AsyncGRPOConfig(
        output_dir=f"{options.weights}/trl",
        max_steps=options.steps,
        per_device_train_batch_size=options.rows,  # a batch is one optimiser step, and one forward pass
        gradient_accumulation_steps=1,
        token_budget=-1,
        max_staleness=10**6,  # the run's max_off_policy_steps decides
        learning_rate=options.learning_rate,
        temperature=options.temperature,
        gradient_checkpointing=not on_cpu,
        bf16=not on_cpu,
        use_cpu=on_cpu,
        **{"report_to": [], "save_strategy": "no", "disable_tqdm": True},
    )
    run = Run(options.url, options.run, options.token)
    pad = json.load(open(os.path.join(options.model, "config.json"))).get("pad_token_id") or 0
    worker = RolloutWorker(run, options.steps, options.rows, pad)
    transfer = WeightTransfer(run, worker, options)
    nothing = Dataset.from_dict({"prompt": [[{"role": "user", "content": ""}]]})  # tasks are the run's
    trainer = Trainer(options.model, None, config, nothing, rollout_worker=worker, weight_transfer=transfer)
    transfer.trainer = trainer
    trainer.train()


if __name__ == "__main__":
    sys.exit(main())
