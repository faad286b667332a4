"""Reads exported rows as docs/training-data.md says, renders them through chat templates, and trains on them.

    python read_rows.py LOADER.py SFT.jsonl DPO.jsonl STEPS TEMPLATES TRAINED

LOADER.py is the page's own code: it defines load(path, columns). TEMPLATES are names of templates TRL ships for the
models it supports, and TRAINED those of them to train with, separated by commas. Prints one JSON object: by template
the rendered text of every row or its error, and the results of two trainers.
The model is tiny and random, its tokenizer is made here from the rows' own bytes: nothing is downloaded.
"""

import json
import math
import os
import runpy
import sys
import tempfile
from pathlib import Path

os.environ.update(HF_HUB_OFFLINE="1", HF_HUB_DISABLE_TELEMETRY="1")
os.environ.update(TOKENIZERS_PARALLELISM="false", WANDB_DISABLED="true")

import torch
import trl
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM
from trl import DPOConfig, DPOTrainer, SFTConfig, SFTTrainer

SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<tool_call>", "</tool_call>", "<|eot_id|>", "<|end|>"]


def template(name):
    return (Path(trl.__file__).parent / "chat_templates" / f"{name}.jinja").read_text()


def tokenizer_of(texts):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    sizes = {"vocab_size": 600, "special_tokens": SPECIAL, "initial_alphabet": alphabet}
    trainer = trainers.BpeTrainer(show_progress=False, **sizes)
    tokenizer.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token="<|im_end|>", pad_token="<|endoftext|>", bos_token="<|endoftext|>"
    )


def tiny_model(tokenizer, folder):
    """Loaded from a folder, because a trainer loads it again as the reference model."""
    torch.manual_seed(7)
    config = Qwen2Config(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=8192,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    Qwen2ForCausalLM(config).save_pretrained(folder)
    return Qwen2ForCausalLM.from_pretrained(folder)


def rendered(tokenizer, conversations):
    texts = []
    for messages, tools in conversations:
        try:
            texts.append({"text": tokenizer.apply_chat_template(messages, tools=tools, tokenize=False)})
        except Exception as error:  # the test is about the errors of templates
            texts.append({"error": f"{type(error).__name__}: {error}"})
    return texts


def trained(trainer_class, config_class, dataset, tokenizer, steps):
    """Losses by step, and the parameters that moved."""
    with tempfile.TemporaryDirectory() as folder:
        model = tiny_model(tokenizer, folder)
        before = {name: value.clone() for name, value in model.state_dict().items()}
        args = config_class(
            output_dir=folder,
            max_steps=steps,
            per_device_train_batch_size=2,
            learning_rate=1e-2,
            logging_steps=1,
            report_to=[],
            save_strategy="no",
            use_cpu=True,
            max_length=None,
            bf16=False,
            gradient_checkpointing=False,
            disable_tqdm=True,
        )
        trainer = trainer_class(model=model, args=args, train_dataset=dataset, processing_class=tokenizer)
        trainer.train()
        texts = [tokenizer.decode(row[name]) for row in trainer.train_dataset for name in row if name.endswith("_ids")]
    losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    moved = sum(not torch.equal(value, before[name]) for name, value in model.state_dict().items())
    return {"losses": losses, "finite": all(map(math.isfinite, losses)), "moved": moved, "texts": texts}


def called(path):
    """The arguments of the first call of each line, read only with Python's JSON."""
    calls = []
    for line in Path(path).read_text().splitlines():
        said = [message for message in json.loads(line)["messages"] if message.get("tool_calls")]
        given = said[0]["tool_calls"][0]["function"]["arguments"]
        calls.append({"json": json.dumps(given, ensure_ascii=False), "object": given})
    return calls


def main():
    loader, sft_path, dpo_path, steps, templates, with_templates = sys.argv[1:]
    load = runpy.run_path(loader)["load"]
    sft = load(sft_path, ["messages", "tools"])
    dpo = load(dpo_path, ["prompt", "chosen", "rejected", "tools"])
    lines = [*Path(sft_path).read_text().splitlines(), *Path(dpo_path).read_text().splitlines()]
    tokenizer = tokenizer_of(lines)
    answer = {"sft": list(sft), "dpo": list(dpo), "arguments": called(sft_path), "rendered": {}, "trained": {}}
    for name in templates.split(","):
        tokenizer.chat_template = template(name)
        answer["rendered"][name] = rendered(tokenizer, [(row["messages"], row["tools"]) for row in sft])
    for name in with_templates.split(","):
        tokenizer.chat_template = template(name)
        answer["trained"][name] = {
            "sft": trained(SFTTrainer, SFTConfig, sft, tokenizer, int(steps)),
            "dpo": trained(DPOTrainer, DPOConfig, dpo, tokenizer, int(steps)),
        }
    print("\n" + json.dumps(answer))


main()
