"""Feeds a stock prime-rl trainer with the batches of a Rollcall training run, and says what it trained.

It takes the place of prime-rl's orchestrator: it writes the rank files of a step, accepts the weights that the
trainer offers in broadcasts/step_N, waits until they are complete, acknowledges the batch, and reports the new
weights. It needs Python 3.9, the package msgpack, and the directory that the trainer writes to. README.md has the
commands, and names the commits of prime-rl that use each of the two protocols.

What a kill does. The state file is written before the rank files become visible, and names their batch. After a
restart the bridge therefore knows what the trainer may have read: if the weights of the step are complete, the batch
is trained, and the registration acknowledges it; if not, the same batch is leased again, and its files stay as they
are.
"""

import argparse
import array
import gzip
import hashlib
import http.client
import json
import os
import shutil
import signal
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

import msgpack

# The order of prime-rl's MicroBatch at 0f59b24 ends with what a row cannot have: nil in every case.
STREAMS = {"ref_logprobs": 0.0, "rl_weights": 1.0, "ce_weights": 0.0, "ref_kl_weights": 0.0}
PADDING_ID = 1
OPEN_TOKENS = 1 << 20  # as the platform packs: of sequences that are begun and not full
# Files in broadcasts/step_N. A trainer with the handshake offers each version, blocks until the offer is accepted, and
# marks the weights as complete; an older one only marks them.
OFFERED, ACCEPTED, COMPLETE = ".sender_ready", ".receiver_ready", (".finished", "STABLE")
PAUSE_S, UPDATE_S = 300, 720  # what prime-rl's orchestrator grants its engines
RETRY_S, AGAIN_S = 1.0, 10.0  # a request that was lost; an engine that failed

stopping, failed = threading.Event(), threading.Event()


class Fenced(Exception):
    """Another trainer registered, or the run is over for this one."""


class LeaseLost(Exception):
    """The lease ended while the trainer was at work."""


speaking = threading.Lock()


def say(word, **more):
    """One line of JSON, whole, whichever threads speak at once."""
    with speaking:
        print(json.dumps({"bridge": word, **more}), flush=True)


def fail(message):
    """Ends the bridge with exit code 1, from any thread."""
    say("failed", message=message)
    failed.set()
    stopping.set()
    raise SystemExit(1)


# Rows and bytes


def as_float32(numbers):
    return array.array("f", numbers).tolist()


def plain(member):
    """An array of a row in msgpack; anything else as it is."""
    if not isinstance(member, dict) or "dtype" not in member:
        return member
    values = array.array({"int32": "i", "float32": "f", "uint8": "B"}[member["dtype"]])
    values.frombytes(member["data"])
    if sys.byteorder == "big":
        values.byteswap()
    return values.tolist()


def rows_of(data, kind):
    """The rows of one object, gzipped, as the manifest names its format."""
    text = gzip.decompress(data)
    if "+jsonl" in kind:
        rows = [json.loads(line) for line in text.splitlines()]
    else:
        unpacker = msgpack.Unpacker(max_buffer_size=0)
        unpacker.feed(text)
        rows = [{name: plain(member) for name, member in row.items()} for row in unpacker]
    for row in rows:
        for name in ("logprobs", *STREAMS):
            if row.get(name) is not None:
                row[name] = as_float32(row[name])
    return rows


def with_credit(row, line):
    """The row with its advantage; with a weight, each trained token has it in `rl_weights`."""
    weight = line.get("weight", 1)
    if weight == 1:
        return {**row, "advantage": line["advantage"]}
    own = row.get("rl_weights") or [1.0] * len(row["mask"])
    weights = as_float32(bit * weight * each for bit, each in zip(row["mask"], own))
    return {**row, "advantage": line["advantage"], "rl_weights": weights}


def pack_rows(lengths, seq_len):
    """First fit, in the order of the batch. The numbers of rows, pack by pack, in the order of their last rows."""
    packs, opened, held = [], [], 0
    for row, length in enumerate(lengths):
        tokens = min(length, seq_len)
        while opened and held + tokens > max(seq_len, OPEN_TOKENS):
            fullest = max(opened, key=lambda pack: pack["tokens"])
            opened.remove(fullest)
            held -= fullest["tokens"]
        pack = next((begun for begun in opened if begun["tokens"] + tokens <= seq_len), None)
        if pack is None:
            pack = {"rows": [], "tokens": 0}
            opened.append(pack)
            packs.append(pack)
        pack["rows"].append(row)
        pack["tokens"] += tokens
        held += tokens
    return [pack["rows"] for pack in sorted(packs, key=lambda pack: pack["rows"][-1])]


def branch_of(row):
    branch = row["sample_id"][len(row["rollout_id"]) + 1 :]
    is_branch = row["sample_id"].startswith(row["rollout_id"] + ".") and branch.isascii() and branch.isdigit()
    return int(branch) if is_branch and len(branch) < 10 else -1


def micro_batch(rows, seq_len, pad_to):
    """One packed sequence, value by value in prime-rl's order. Each row has its `advantage`."""
    lengths = [min(len(row["token_ids"]), seq_len) for row in rows]
    padding = -sum(lengths) % pad_to

    def column(of, filler):
        return [value for row, length in zip(rows, lengths) for value in of(row)[:length]] + [filler] * padding

    def stream(name):
        if all(row.get(name) is None for row in rows):
            return None
        return column(lambda row: row.get(name) or [STREAMS[name]] * len(row["token_ids"]), 0.0)

    per_row = [*lengths[:-1], lengths[-1] + padding]
    return [
        column(lambda row: row["token_ids"], PADDING_ID),
        column(lambda row: [bit == 1 for bit in row["mask"]], False),
        column(lambda row: [float(row["advantage"]) if bit else 0.0 for bit in row["mask"]], 0.0),
        column(lambda row: row["logprobs"], 0.0),
        [at for length in (*lengths, padding) for at in range(length)],
        per_row,
        column(lambda row: [float(row["temperature"])] * len(row["token_ids"]), 1.0),
        column(lambda row: [row["env"]] * len(row["token_ids"]), ""),
        per_row,
        stream("ref_logprobs"),
        *[None] * 3,
        stream("rl_weights"),
        stream("ce_weights"),
        stream("ref_kl_weights"),
        None,
        [row["rollout_id"] for row in rows],
        [branch_of(row) for row in rows],
        None,
    ]


def dummy(pad_to):
    """For a rank that is short of a micro batch: padding alone, so nothing in it trains."""
    per_token = [[filler] * pad_to for filler in (PADDING_ID, False, 0.0, 0.0)]
    return [*per_token, [*range(pad_to)], [pad_to], [1.0] * pad_to, [""] * pad_to, [pad_to], *[None] * 11]


def rank_bytes(rows, ranks, seq_len, pad_to):
    """What each rank's file holds: as many micro batches for all."""
    packs = pack_rows([len(row["token_ids"]) for row in rows], seq_len)
    batches = [micro_batch([rows[at] for at in pack], seq_len, pad_to) for pack in packs]
    each = max(1, -(-len(batches) // ranks))
    batches += [dummy(pad_to) for _ in range(each * ranks - len(batches))]
    return [msgpack.packb(batches[rank::ranks]) for rank in range(ranks)]


# Files


def write_aside(path, data):
    """On disk, under a name that nobody reads; `show` gives it its own."""
    with open(f"{path}.tmp", "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def show(path):
    os.replace(f"{path}.tmp", path)


class State:
    """What is known across restarts: the last batch that was acknowledged, and the one whose files may be seen."""

    def __init__(self, path, run):
        self.path = path
        self.kept = {"run": run, "version": 0, "last_acked": None, "written": None, "reset": None}
        if path.exists():
            self.kept = json.loads(path.read_text())
        if self.kept["run"] != run:
            fail(f"{path} is of {self.kept['run']}: give each run an output directory of its own")

    def __getitem__(self, name):
        return self.kept[name]

    def keep(self, **changed):
        self.kept = {**self.kept, **changed}  # a new one: another thread reads several values of one moment
        write_aside(self.path, json.dumps(self.kept).encode())
        show(self.path)


class Broadcasts:
    """The trainer's folder broadcasts, with a folder for each version of the weights."""

    def __init__(self, output_dir):
        self.folder = output_dir / "broadcasts"

    def of(self, version):
        return step_path(self.folder, version)

    def is_complete(self, version):
        return any((self.of(version) / name).exists() for name in COMPLETE)

    def latest_offer(self):
        """The version that was offered last, and whether it was accepted; None: nothing was offered."""
        offers = []
        for path in self.folder.glob(f"step_*/{OFFERED}"):
            try:
                offers.append((path.stat().st_mtime_ns, int(path.parent.name[5:]), path))
            except (OSError, ValueError):
                continue  # removed meanwhile, or not of the trainer
        if not offers:
            return None
        _, version, path = max(offers)
        return version, (path.parent / ACCEPTED).exists()

    def accept(self, version):
        """False: the trainer removed its offer meanwhile, and will make it again."""
        try:
            (self.of(version) / ACCEPTED).touch()
        except FileNotFoundError:
            return False
        return True

    def batches_folder(self):
        """Where the trainer reads rank files, by the files that it has written; None: it has written none so far."""
        if self.latest_offer() is not None:
            return "batches"
        return "rollouts" if any(self.folder.glob("step_*/STABLE")) else None


class Offers(threading.Thread):
    """Accepts the versions that the trainer offers, which waits for it. A thread, as the platform may be away."""

    def __init__(self, options, state):
        super().__init__(daemon=True)
        self.options, self.state, self.broadcasts = options, state, Broadcasts(options.output_dir)

    def run(self):
        while not stopping.wait(self.options.poll_s):
            self.one_round()

    def one_round(self):
        """Its next version, or again the one that it starts from. Any other one is of a trainer at another step."""
        offer = self.broadcasts.latest_offer()
        if offer is None or offer[1]:
            return
        version, kept = offer[0], self.state.kept
        at, written = kept["version"], kept["written"]
        if version == at or (written is not None and version == written["step"]):
            if self.broadcasts.accept(version):
                say("accepted", version=version)
        elif version < at:
            fail(f"the trainer offers version {version}, and version {at} was published: see --reset-to in README.md")
        else:
            fail(f"the trainer offers version {version}, and this run is at version {at}: see README.md")


# The platform and the engines


class Platform:
    """Requests under the run's token. Whatever is asked may be asked again, so what is lost on the way is."""

    def __init__(self, url, run, token):
        self.root, self.run, self.token = f"{url.rstrip('/')}/v1", run, token

    def ask(self, path, body=None, timeout=90):
        data = None if body is None else json.dumps(body).encode()
        headers = {"authorization": f"Bearer {self.token}", "content-type": "application/json"}
        while True:
            try:
                request = urllib.request.Request(f"{self.root}/{path}", data, headers)
                with urllib.request.urlopen(request, timeout=timeout) as reply:
                    return reply.status, reply.read()
            except urllib.error.HTTPError as error:
                if error.code < 500 and error.code != 429:
                    return error.code, error.read()
            except (OSError, http.client.HTTPException):
                pass  # the platform is away, or the reply broke off
            if stopping.wait(RETRY_S):
                raise SystemExit(0)

    def tell(self, path, body):
        status, reply = self.ask(path, body)
        answer = json.loads(reply or b"null")
        if status < 400:
            return answer
        code, message = answer["error"]["code"], answer["error"]["message"]
        if code in ("epoch_fenced", "run_finished"):
            raise Fenced(code)
        if code == "lease_lost":
            raise LeaseLost(message)
        fail(f"{path}: {code}: {message}")

    def objects(self, manifest):
        """Each object's bytes, held against its digest."""
        at = f"runs/{self.run}/batches/{manifest['step']}"
        status, joined = self.ask(f"{at}/stream", timeout=600)
        if status not in (200, 413):
            raise LeaseLost(joined.decode())
        rest = 0
        for it in manifest["objects"]:
            if status == 413:  # more objects than one answer gives
                data = self.ask(f"{at}/objects/{it['sha256']}")[1]
            else:
                data, rest = joined[rest : rest + it["bytes"]], rest + it["bytes"]
            yield checked(data, it["sha256"]), it["format"]

    def rows(self, manifest):
        """The rows that train, each with its advantage, and its weight in the loss in `rl_weights`."""
        if manifest["estimator"]["name"] == "none":
            fail("prime-rl's trainer needs advantages, but the run computes none: set its `advantage`")
        at = f"runs/{self.run}/batches/{manifest['step']}/credits"
        lines = checked(self.ask(at)[1], manifest["credits"]["sha256"]).splitlines()
        credit = {line["sample_id"]: line for line in map(json.loads, lines)}
        rows = [row for data, kind in self.objects(manifest) for row in rows_of(data, kind)]
        credited = [with_credit(row, credit[row["sample_id"]]) for row in rows if row["sample_id"] in credit]
        return [row for row in credited if row["advantage"] is not None]


def checked(data, sha256):
    if hashlib.sha256(data).hexdigest() != sha256:
        fail(f"the bytes of {sha256} are others than the manifest names")
    return data


class Heart(threading.Thread):
    """Keeps a lease alive while the trainer is at work."""

    def __init__(self, platform, lease, epoch):
        super().__init__(daemon=True)
        self.platform, self.lease, self.proof = platform, lease, {"token": lease["token"], "epoch": epoch}
        self.over, self.lost = threading.Event(), None
        self.start()

    def run(self):
        pause = max(1.0, (self.lease["expires_at"] - time.time()) / 3)
        while not self.over.wait(pause):
            try:
                self.platform.tell(f"leases/{self.lease['id']}/heartbeat", self.proof)
            except (Fenced, LeaseLost) as lost:
                self.lost = lost
                return
            except SystemExit:
                return

    def stop(self):
        self.over.set()


class Replicas(threading.Thread):
    """Brings the engines to the latest version, and reports each: one thread, while the next batch is on its way."""

    def __init__(self, options, platform):
        super().__init__(daemon=True)
        self.options, self.platform = options, platform
        self.wanted, self.served, self.again = None, {}, {}

    def bring(self, version, epoch):
        self.wanted = (version, epoch)

    def run(self):
        while not stopping.wait(self.options.poll_s):
            self.one_round()

    def one_round(self):
        wanted = self.wanted
        for name, url in self.options.replicas:
            if wanted is None or self.served.get(name) == wanted or self.again.get(name, 0) > time.monotonic():
                continue
            if self.update(name, url, wanted):
                self.report(name, "applied", *wanted)
                self.served[name] = wanted

    def update(self, name, url, wanted):
        broadcasts = Broadcasts(self.options.output_dir)
        weights = broadcasts.of(wanted[0])
        if not broadcasts.is_complete(wanted[0]):
            return False
        if url is None:
            return (weights / f"APPLIED.{name}").exists()
        try:
            post(f"{url}/pause?mode=keep&clear_cache=false", None, PAUSE_S)
            try:
                post(f"{url}/update_weights", {"weight_dir": weights.as_posix()}, UPDATE_S)
            finally:
                post(f"{url}/resume", None, PAUSE_S)
            return True
        except (OSError, http.client.HTTPException) as error:
            say("not applied", replica=name, version=wanted[0], why=str(error))
            self.report(name, "failed", *wanted)
            self.again[name] = time.monotonic() + AGAIN_S
            return False

    def report(self, name, state, version, epoch):
        try:
            body = {"version": version, "state": state, "epoch": epoch, "replica": name}
            self.platform.tell(f"runs/{self.platform.run}/weight-versions", body)
            say(state, replica=name, version=version)
        except Fenced:
            stopping.set()


def post(url, body, timeout):
    data = b"" if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"content-type": "application/json"}, method="POST")
    with urllib.request.urlopen(request, timeout=timeout) as reply:
        reply.read()


# The loop


def step_path(folder, step):
    return folder / f"step_{step}"


class Bridge:
    def __init__(self, options):
        self.options = options
        self.platform = Platform(options.url, options.run, options.token)
        self.state = State(options.state, options.run)
        self.replicas = Replicas(options, self.platform)
        self.broadcasts, self.offers = Broadcasts(options.output_dir), Offers(options, self.state)
        self.epoch = 0

    def main(self):
        self.register()
        self.replicas.start()
        self.offers.start()
        try:
            while not stopping.is_set():
                self.one_step()
        except Fenced as fenced:
            if str(fenced) != "run_finished":
                fail("another trainer registered for this run")
            self.wait_until_served()
            say("finished", version=self.state["version"])

    def register(self):
        written, reset_to = self.state["written"], self.options.reset_to
        if reset_to is not None and reset_to == self.state["reset"]:
            reset_to = None  # done before: whoever starts this again starts it with the same flags
        if written is not None and reset_to is None and self.broadcasts.is_complete(written["step"]):
            # Trained, though nobody may have been told: the registration tells it.
            self.state.keep(version=written["step"], last_acked=identity(written), written=None)
        me = {"trainer_id": self.options.trainer_id, "kind": "prime-rl", "protocol": "rl.batch/1"}
        known = {"version": self.state["version"], "last_acked": self.state["last_acked"]}
        if reset_to is not None:
            known = {"version": reset_to, "reset_to": reset_to}
        registered = self.platform.tell(f"runs/{self.options.run}/trainer/register", {**me, **known})
        self.epoch = registered["epoch"]
        if reset_to is not None:
            self.state.keep(version=reset_to, last_acked=None, written=None, reset=reset_to)
        version = self.state["version"]
        say("registered", epoch=self.epoch, version=version)
        if version > 0:
            body = {"version": version, "state": "published", "epoch": self.epoch, **self.location(version)}
            self.platform.tell(f"runs/{self.options.run}/weight-versions", body)
        self.replicas.bring(version, self.epoch)

    def location(self, version):
        weights = self.broadcasts.of(version)
        return {"location": f"{self.options.location_prefix}{weights}", "label": f"step_{version}"}

    def one_step(self):
        step = self.state["version"] + 1
        body = {"trainer_id": self.options.trainer_id, "epoch": self.epoch, "want_step": step, "max_wait_s": 10}
        leased = self.platform.tell(f"runs/{self.options.run}/trainer/lease", body)
        if leased is None or stopping.is_set():
            return  # a lease that nobody uses ends by itself, or with the next registration
        lease, manifest = leased["lease"], leased["manifest"]
        say("leased", step=step, batch_id=manifest["batch_id"], attempt=lease["attempt"])
        heart = Heart(self.platform, lease, self.epoch)
        began = time.monotonic()
        try:
            if self.batches_folder() is None:
                say("waiting", step=step, why="the trainer has written no weights, and so has not started")
            folder = self.wait_for(self.batches_folder, heart)
            if folder is None:
                return
            self.write(step_path(folder, step), step, manifest)
            if self.wait_for(lambda: self.broadcasts.is_complete(step) or None, heart):
                self.acknowledge(step, lease, manifest, time.monotonic() - began)
        except LeaseLost:
            # Trained it is, and the registration says so; or the same batch is leased again.
            self.register()
        finally:
            heart.stop()

    def batches_folder(self):
        name = self.options.batches_folder or self.broadcasts.batches_folder()
        return name and self.options.output_dir / name

    def write(self, folder, step, manifest):
        """All files before one is seen. What the trainer may have taken is never written anew as something else."""
        options, written = self.options, self.state["written"]
        packing = {"ranks": options.ranks, "seq_len": options.seq_len, "pad_to": options.pad_to_multiple_of}
        batch = {"step": step, **identity(manifest), **packing}
        files = [folder / f"rank_{rank}.bin" for rank in range(options.ranks)]
        if written != batch and (any(folder.glob("rank_*.bin")) or self.broadcasts.is_complete(step)):
            fail(f"step {step} of {options.output_dir} is of another batch, or packed otherwise: see README.md")
        if all(path.exists() for path in files):
            return
        rows = self.platform.rows(manifest)
        shares = rank_bytes(rows, options.ranks, options.seq_len, options.pad_to_multiple_of)
        folder.mkdir(parents=True, exist_ok=True)
        for path, share in zip(files, shares):
            write_aside(path, share)
        self.state.keep(written=batch)
        for path in files:
            show(path)
        say("written", step=step, rows=len(rows), bytes=sum(map(len, shares)))
        for old in range(step - options.keep, 0, -1):
            if not step_path(folder.parent, old).exists():
                break
            shutil.rmtree(step_path(folder.parent, old))

    def wait_for(self, look, heart):
        """What `look` finds, once it is not None. None: told to stop meanwhile; the trainer keeps what it has read."""
        while (found := look()) is None:
            if heart.lost is not None:
                raise heart.lost
            if stopping.wait(self.options.poll_s):
                return None
        return found

    def acknowledge(self, step, lease, manifest, seconds):
        proof = {"token": lease["token"], "epoch": self.epoch, **identity(manifest), "produced_version": step}
        more = {"metrics": {"train_s": seconds}, "published": self.location(step)}
        self.platform.tell(f"leases/{lease['id']}/ack", {**proof, **more})
        self.state.keep(version=step, last_acked=identity(manifest), written=None)
        say("acked", step=step)
        self.replicas.bring(step, self.epoch)

    def wait_until_served(self):
        """The last version reaches the engines, too, or they are away for too long."""
        until = time.monotonic() + UPDATE_S
        while self.options.replicas and time.monotonic() < until and not stopping.wait(self.options.poll_s):
            ledger = json.loads(self.platform.ask(f"runs/{self.options.run}/weight-versions")[1])
            by_replica = ledger["applied"]["by_replica"]
            if all(by_replica.get(name, -1) >= self.state["version"] for name, _ in self.options.replicas):
                return


def identity(batch):
    return {"batch_id": batch["batch_id"], "sha256": batch["sha256"]}


def replica(text):
    """NAME=URL, or a URL that is its own name."""
    name, _, url = text.partition("=") if not text.startswith("http") else (text, "", text)
    return name, url.rstrip("/") or None


def read_options(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    add = parser.add_argument
    add("--url", required=True, help="the platform, without /v1")
    add("--run", required=True, help="the training run, run_…")
    add("--token", default=os.environ.get("ROLLCALL_TRAINER_TOKEN"), help="the run's token ($ROLLCALL_TRAINER_TOKEN)")
    add("--output-dir", required=True, type=lambda text: Path(text).resolve(), help="prime-rl's output directory")
    add("--ranks", type=int, default=1, help="data ranks of the trainer: world size / context parallel (1)")
    add("--seq-len", type=int, required=True, help="the trainer's model.seq_len: tokens of a packed sequence")
    add("--pad-to-multiple-of", type=int, default=1, help="tokens of a packed sequence are a multiple of it (1)")
    add("--vllm", action="append", type=replica, default=[], metavar="[NAME=]URL",
        help="an engine of prime-rl's own server: paused, updated and resumed here; may be given several times")
    add("--replica", action="append", type=lambda name: (name, None), default=[], metavar="NAME",
        help="an engine that somebody else updates, who then makes broadcasts/step_N/APPLIED.NAME")
    add("--batches-folder", choices=("batches", "rollouts"),
        help="where the trainer reads rank files (batches with the handshake, otherwise rollouts)")
    add("--location-prefix", default="", help="before the path of the weights, where it is reported")
    add("--state", type=Path, help="what is kept across restarts (OUTPUT_DIR/rollcall-bridge.json)")
    add("--trainer-id", default="prime-rl", help="as the run names this trainer")
    add("--keep", type=int, default=16, help="steps whose rank files are kept (16)")
    add("--poll-s", type=float, default=0.5, help="seconds between two looks at the trainer's files (0.5)")
    add("--reset-to", type=int, help="the trainer went back to this version: give up what later ones sampled, once")
    options = parser.parse_args(argv)
    if not options.token:
        parser.error("give --token, or $ROLLCALL_TRAINER_TOKEN")
    for name, least in (("ranks", 1), ("seq_len", 2), ("pad_to_multiple_of", 1), ("keep", 1)):
        if getattr(options, name) < least:
            parser.error(f"--{name.replace('_', '-')} is at least {least}")
    options.state = options.state or options.output_dir / "rollcall-bridge.json"
    options.replicas = [*options.vllm, *options.replica]
    options.output_dir.mkdir(parents=True, exist_ok=True)
    return options


def main():
    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, lambda *_: stopping.set())
    try:
        Bridge(read_options()).main()
    except SystemExit as end:
        raise SystemExit(1 if failed.is_set() else end.code)
    if failed.is_set():
        raise SystemExit(1)
    say("stopped")


if __name__ == "__main__":
    main()
