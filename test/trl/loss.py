"""Computes the loss of one batch with TRL's own trainers, and its gradient by the logprob of every token.

    python loss.py EXAMPLE LINES.jsonl SCORES.f32 SETTINGS.json

EXAMPLE is the folder of examples/trainers/trl, whose adapter reads LINES.jsonl: rows in the form that the run gives to
TRL. SCORES.f32 are the policy's logits after each token of each row except the last, as 32-bit floats; SETTINGS.json is
a list of {"trainer", "config"}. Prints one JSON list, in the order of the settings: {"loss", "metrics", "gradients"},
with a gradient for each token of each row except the first.

Nothing of TRL is replaced: its rows, packing, collator, log-softmax and losses. The model is a table: it looks up the
logits of a prefix. If several rows share a prefix and its next token, the first of them has the gradient.
"""

import json
import os
import sys
import tempfile
from types import SimpleNamespace

os.environ.update(HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false", TRL_EXPERIMENTAL_SILENCE="1")
sys.path.insert(0, sys.argv[1])
sys.dont_write_bytecode = True

import numpy as np
import torch
from datasets import Dataset
from tokenizers import Tokenizer, models
from trainer import RolloutWorker, use_sdpa
from transformers import PretrainedConfig, PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM
from trl import GRPOConfig, GRPOTrainer
from trl.experimental.async_grpo import AsyncGRPOConfig, AsyncGRPOTrainer
from trl.trainer.utils import add_fused_lm_head, pad

PAD = 0


class Table(torch.nn.Module):
    """A table of logits by prefix, with TRL's own fused head on top."""

    def __init__(self, rows, scores):
        super().__init__()
        # The last one: after a row's last token.
        self.logits = torch.tensor(np.vstack([scores, np.zeros_like(scores[:1])]))
        ends = [(number, end) for number, row in enumerate(rows) for end in range(1, len(row))]
        # By prefix: its logits; by prefix and next token: the first row, and where in it.
        self.behind, self.first = {}, {}
        for at, (number, end) in enumerate(ends):
            self.behind.setdefault(tuple(rows[number][:end]), at)
            self.first.setdefault(tuple(rows[number][: end + 1]), (number, end))
        self.config = PretrainedConfig()
        vocabulary = scores.shape[-1]
        self.head = torch.nn.Linear(vocabulary, vocabulary, bias=False).requires_grad_(False)
        self.head.weight.copy_(torch.eye(vocabulary))
        self.base_model = self.backbone
        add_fused_lm_head(self, outputs=("log_probs", "entropy"))

    def get_output_embeddings(self):
        return self.head

    def forward(self, *given, **named):
        raise NotImplementedError("only with the fused head")

    def backbone(self, input_ids, attention_mask=None, **tree):
        self.prefixes = []
        for number, ids in enumerate(input_ids.tolist()):
            if attention_mask is None:
                self.prefixes.append(self.paths(ids, **tree))
            else:
                seen = attention_mask[number].tolist()
                self.prefixes.append([tuple(t for t, s in zip(ids[: at + 1], seen) if s) for at in range(len(ids))])
        found = [[self.behind.get(prefix, -1) for prefix in row] for row in self.prefixes]
        hidden = self.logits[torch.tensor(found)].requires_grad_()
        return SimpleNamespace(last_hidden_state=hidden)

    def paths(self, ids, tree_kv_index, tree_cu_seqlens_q, tree_cu_seqlens_k, **_):
        """The tokens that each packed token attends to."""
        prefixes, index = [], tree_kv_index.tolist()
        of_q, of_k = tree_cu_seqlens_q.tolist(), tree_cu_seqlens_k.tolist()
        for at in range(len(of_q) - 1):
            path = [ids[place] for place in index[of_k[at] : of_k[at + 1]]]
            before = len(path) - (of_q[at + 1] - of_q[at])
            prefixes += [tuple(path[: before + 1 + place]) for place in range(len(path) - before)]
        return prefixes

    def __call__(self, **named):
        outputs = self.forward(**named)
        self.labels = named["shift_labels"] if "shift_labels" in named else named["labels"][:, 1:]
        self.log_probs = outputs.log_probs
        self.log_probs.retain_grad()
        return outputs

    def gradients(self, rows):
        """The gradients by the logprob of each token of each row except its first."""
        held = [[0.0] * (len(row) - 1) for row in rows]
        for prefixes, labels, row in zip(self.prefixes, self.labels.tolist(), self.log_probs.grad.tolist()):
            for prefix, label, gradient in zip(prefixes, labels, row):
                if gradient != 0:
                    number, end = self.first[(*prefix, label)]
                    held[number][end - 1] += gradient
        return held


def tiny_model(folder, vocabulary):
    """The trainers' constructors require a model; this one computes nothing."""
    sizes = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1}
    config = Qwen2Config(vocab_size=vocabulary, num_attention_heads=1, num_key_value_heads=1, **sizes)
    config.pad_token_id = config.eos_token_id = PAD
    Qwen2ForCausalLM(config).save_pretrained(folder)
    tokenizer = Tokenizer(models.WordLevel({"<pad>": PAD}, unk_token="<pad>"))
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<pad>", eos_token="<pad>")
    tokenizer.save_pretrained(folder)
    return tokenizer


class Asynchronous:
    """AsyncGRPOTrainer: its own data loader packs the rows of the example's worker."""

    def __init__(self, folder, tokenizer, nothing, lines, config):
        self.worker = RolloutWorker(None, 1, len(lines), PAD)
        self.worker.put(1, lines, "")
        wants = {"per_device_train_batch_size": len(lines), "token_budget": -1, **config}
        args = AsyncGRPOConfig(output_dir=folder, max_steps=1, bf16=False, use_cpu=True, report_to=[], **wants)
        asked = {"rollout_worker": self.worker, "weight_transfer": SimpleNamespace()}
        self.trainer = AsyncGRPOTrainer(folder, None, args, nothing, tokenizer, **asked)

    def loss(self, table):
        inputs = next(iter(self.trainer.get_train_dataloader()))
        return self.trainer.compute_loss(table, inputs)


class Synchronous:
    """GRPOTrainer: gets the result that its generation would have had."""

    def __init__(self, folder, tokenizer, nothing, lines, config):
        args = GRPOConfig(output_dir=folder, bf16=False, use_cpu=True, report_to=[], num_generations=2, **config)
        model = Qwen2ForCausalLM.from_pretrained(folder)
        self.trainer = GRPOTrainer(model, lambda **_: [], args, nothing, processing_class=tokenizer)
        self.lines = lines

    def loss(self, table):
        begins = [line["completion_mask"].index(1) for line in self.lines]

        def parts(name, kind, ends):
            return [torch.tensor(line[name][part], dtype=kind) for line, part in zip(self.lines, ends)]

        prompts, completions = [slice(0, at) for at in begins], [slice(at, None) for at in begins]
        prompt_ids = parts("input_ids", torch.long, prompts)
        completion_ids = parts("input_ids", torch.long, completions)
        tool_mask = pad(parts("completion_mask", torch.long, completions))
        inputs = {
            "prompt_ids": pad(prompt_ids, padding_value=PAD, padding_side="left"),
            "prompt_mask": pad([torch.ones_like(ids) for ids in prompt_ids], padding_side="left"),
            "completion_ids": pad(completion_ids, padding_value=PAD),
            "completion_mask": pad([torch.ones_like(ids) for ids in completion_ids]),
            "tool_mask": tool_mask,
            "old_per_token_logps": pad(parts("old_log_probs", torch.float32, completions)),
            "advantages": torch.tensor([line["advantage"] for line in self.lines]),
            "num_items_in_batch": tool_mask.sum(),
        }
        return self.trainer.compute_loss(table, inputs)


TRAINERS = {"AsyncGRPOTrainer": Asynchronous, "GRPOTrainer": Synchronous}


def main():
    _, lines_path, scores_path, settings_path = sys.argv[1:]
    lines = [json.loads(line) for line in open(lines_path)]
    rows = [line["input_ids"] for line in lines]
    scores = np.fromfile(scores_path, dtype="<f4").reshape(sum(len(row) - 1 for row in rows), -1)
    nothing = Dataset.from_dict({"prompt": [""]})
    use_sdpa()
    answers = []
    with tempfile.TemporaryDirectory() as folder:
        tokenizer = tiny_model(folder, scores.shape[-1])
        for setting in json.load(open(settings_path)):
            made = TRAINERS[setting["trainer"]](folder, tokenizer, nothing, lines, setting["config"])
            made.trainer.model.train()
            made.trainer.current_gradient_accumulation_steps = 1
            table = Table(rows, scores)
            loss = made.loss(table)
            loss.backward()
            held = {key: values[-1] for key, values in made.trainer._metrics["train"].items()}
            metrics = {key: value for key, value in held.items() if np.isscalar(value)}
            answers.append({"loss": loss.item(), "metrics": metrics, "gradients": table.gradients(rows)})
    print("\n" + json.dumps(answers))


main()
