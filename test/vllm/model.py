"""
A language model of half a million weights that vLLM can serve: `python model.py FOLDER`.

It is Qwen2 with two layers, in 32-bit floats, with its own tokenizer and chat template, trained for less than a
minute on generated lines: counting, and tool calls. Its text is good enough for the environments next to it, including
tool calls that parse, and it is unsure enough that a wrong probability shows. The same seed makes the same
files on one machine.

Its generation_config.json has what released models often have: a penalty, and a truncated distribution.
"""

import json
import random
import sys

import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
from torch.nn.functional import cross_entropy
from transformers import GenerationConfig, PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM
from transformers.utils import logging

CONTEXT = 1024
VOCABULARY = 400
STEPS = 350
ROWS_PER_STEP = 8
# The rounding error of 32-bit floats grows with the weights, so these are learned slowly and pulled towards 0. It also
# grows where the terms of a sum cancel out, so tokens begin further from 0 than layers add to them. Without both,
# models of this size are off by up to 2e-5 with nothing wrong.
LEARNING_RATE = 1e-3
WEIGHT_DECAY = 1
EMBEDDED = 30
# The share of the label's probability that is spread over all tokens: at temperature 1 a token of a call is wrong this
# often.
UNSURE = 0.15
# The share of the conversations with a call that show the tools.
SHOWN = 0.7
# One token each, so that an unsure model reaches the end of a call. They are still text, as <tool_call> is with Qwen,
# because a parser of tool calls has to find them.
PIECES = [
    "<tool_call>",
    "</tool_call>",
    '{"name": "add", "arguments": {"a": ',
    '{"name": "multiply", "arguments": {"a": ',
    ', "b": ',
    "}}",
]

TEMPLATE = """{% if tools %}<|im_start|>system
{% for tool in tools %}{{ tool | tojson }}
{% endfor %}<|im_end|>
{% endif %}{% for message in messages %}<|im_start|>{{ message.role }}
{{ message.content or '' }}{% for call in message.tool_calls or [] %}\
<tool_call>{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}</tool_call>\
{% endfor %}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""

def tool(name):
    """A tool in the form in which the platform sends the tools of environment.ts in training."""
    number = {"type": "number"}
    parameters = {
        "type": "object",
        "properties": {"a": number, "b": number},
        "required": ["a", "b"],
        "additionalProperties": False,
        "title": f"{name}_args",
    }
    described = {"name": name, "description": f"{name} two numbers", "parameters": parameters}
    return {"type": "function", "function": described}


TOOLS = [tool("add"), tool("multiply")]


def demonstration(lines):
    """Messages of one generated conversation, and its tools."""
    start = lines.randrange(90)
    counted = " ".join(str(start + at) for at in range(lines.randint(2, 5)))
    if lines.random() < 0.4:
        return [{"role": "user", "content": f"Count on from {start}."}, {"role": "assistant", "content": counted}], None
    call = {"name": lines.choice(["add", "multiply"]), "arguments": {"a": start, "b": lines.randrange(90)}}
    return [
        {"role": "user", "content": f"What is {start} and {call['arguments']['b']}?"},
        {"role": "assistant", "content": None, "tool_calls": [{"type": "function", "function": call}]},
        {"role": "tool", "content": str(start + call["arguments"]["b"])},
        {"role": "assistant", "content": f"It is {start + call['arguments']['b']}."},
    ], TOOLS if lines.random() < SHOWN else None


def make_tokenizer(texts):
    inner = Tokenizer(models.BPE())
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    inner.train_from_iterator(
        texts,
        trainers.BpeTrainer(
            vocab_size=VOCABULARY, special_tokens=special, initial_alphabet=alphabet, show_progress=False
        ),
    )
    inner.add_tokens([AddedToken(text, special=False, normalized=False) for text in PIECES])
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=inner, eos_token="<|im_end|>", pad_token="<|endoftext|>")
    tokenizer.chat_template = TEMPLATE
    return tokenizer


def make_model(tokenizer):
    torch.manual_seed(0)
    config = Qwen2Config(
        vocab_size=len(tokenizer),
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=4,
        max_position_embeddings=CONTEXT,
        tie_word_embeddings=False,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
    )
    model = Qwen2ForCausalLM(config).float()
    with torch.no_grad():
        model.model.embed_tokens.weight *= EMBEDDED
    return model


def warm_up(model, tokenizer, conversations):
    """Next-token training on the assistant's tokens: a minute at most on one core."""
    optimiser = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE, weight_decay=WEIGHT_DECAY)
    header = tokenizer("<|im_start|>assistant\n").input_ids
    for step in range(STEPS):
        rows = [tokenizer(text).input_ids for text in conversations[step * ROWS_PER_STEP : (step + 1) * ROWS_PER_STEP]]
        longest = max(len(row) for row in rows)
        ids = torch.tensor([row + [tokenizer.pad_token_id] * (longest - len(row)) for row in rows])
        said = torch.tensor([assistant(row, header, tokenizer.eos_token_id, longest) for row in rows])
        # Attention is causal: padding after a row changes nothing in it.
        logits = model(input_ids=ids).logits[:, :-1]
        chosen = said[:, 1:].bool()
        loss = cross_entropy(logits[chosen], ids[:, 1:][chosen], label_smoothing=UNSURE)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return loss.item()


def assistant(row, header, end, length):
    """1 for the assistant's tokens, including the end token."""
    said, speaks = [0] * length, False
    for at in range(len(row)):
        speaks = speaks or row[max(0, at - len(header)) : at] == header
        said[at] = int(speaks)
        speaks = speaks and row[at] != end
    return said


def main(folder):
    torch.set_num_threads(1)
    logging.disable_progress_bar()
    lines = random.Random(0)
    made = [demonstration(lines) for _ in range(STEPS * ROWS_PER_STEP)]
    tokenizer = make_tokenizer([json.dumps(made[:200])])
    conversations = [tokenizer.apply_chat_template(said, tools=tools, tokenize=False) for said, tools in made]
    model = make_model(tokenizer)
    loss = warm_up(model, tokenizer, conversations)
    model.generation_config = GenerationConfig(
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        do_sample=True,
        repetition_penalty=1.3,
        temperature=0.6,
        top_p=0.8,
        top_k=20,
    )
    tokenizer.save_pretrained(folder)
    model.save_pretrained(folder)
    weights = sum(parameter.numel() for parameter in model.parameters())
    print(json.dumps({"weights": weights, "vocabulary": len(tokenizer), "loss": round(loss, 3)}))


main(sys.argv[1])
