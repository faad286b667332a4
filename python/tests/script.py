"""The scripted model of the comparisons: the same answer to the same messages, good and bad ones."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

from fake_platform import echo


def reply(body: dict[str, Any]) -> Any:
    last = body["messages"][-1]
    text = last["content"] if isinstance(last["content"], str) else json.dumps(last["content"])
    if body["model"] == "judge":
        return _verdict(text)
    system = json.dumps(body["messages"][0]["content"])
    if "role-playing a USER" in system:
        return _user(body["messages"])
    if last["role"] == "tool":
        return f"<answer>{text}</answer>" if "answer" in json.dumps(body["messages"][0]) else text
    tools = body.get("tools") or []
    if tools:
        return _call(tools[0]["function"], text)
    actions = re.search(r"legal actions: (.*)\.", text)
    if actions:
        choices = re.findall(r"\[\w+\]", actions.group(1))
        return choices[_number(json.dumps(body["messages"])) % len(choices)]
    exact = re.search(r"Reply with exactly (\w+)", text)
    if exact:
        return exact.group(1)
    if "```python" in text:
        return "```python\nprint(sum(range(101)))\n```"
    if "Reverse the text" in system:
        return f"<reversed_text>{text[::-1].replace('e', 'x')}</reversed_text>"
    if "grade-school" in text:
        return "24 - 9 = 15\n#### 15" if "baker" in text else "#### 150" if "rope" in text else "It is fifty."
    if "names" in text and "order by" in json.dumps(body["messages"]):
        return _sorted(body["messages"])
    if "squares" in text:
        return "ABCDEF"[: 2 * sum(1 for message in body["messages"] if message["role"] == "user")]
    return echo(body)


def _call(function: dict[str, Any], text: str) -> dict[str, Any]:
    """A call of the tool whose first argument is the first quoted text of the prompt."""
    quoted = re.search(r'\\?"([^"\\]+)\\?"', text)
    name = next(iter(function["parameters"]["properties"]))
    arguments = json.dumps({name: quoted.group(1) if quoted else text})
    call = {"id": "call_0", "type": "function", "function": {"name": function["name"], "arguments": arguments}}
    return {"content": None, "tool_calls": [call]}


def _user(messages: list[dict[str, Any]]) -> str:
    """A user who asks for what the persona says, and leaves after one answer."""
    if any(message["role"] == "assistant" for message in messages):
        return "###DONE###"
    return messages[0]["content"].split("do for you:\n\n")[1].split("\n\nRules:")[0]


def _verdict(text: str) -> str:
    """A judge that compares texts, picks verdicts by hash, and gives none for one of the answers."""
    if "Reference answer:" in text:
        answer, response = re.findall(r"```\n(.*?)\n```", text, re.DOTALL)[1:3]
        return "yes" if answer in response and _number(answer) % 2 else "no"
    if "DETERMINISTIC_BLOCK" in text:
        return "I cannot say."
    verdicts = [
        {"name": name, "reason": "by hash", "verdict": ("no", "yes")[_number(name + text) % 2]}
        for name in ("short", "exact")
    ]
    return json.dumps({"verdicts": verdicts})


def _sorted(messages: list[dict[str, Any]]) -> str:
    """The names of all user messages in the order of whole names, whatever order is asked for."""
    users = [message["content"] for message in messages if message["role"] == "user"]
    named = [re.search(r"by \w+ name: (.*)", text) for text in users]
    turns = [match.group(1).split(", ") for match in named if match]
    new = turns[-1] if len(turns) > 1 else []
    names = sorted(name for turn in turns for name in turn)
    lines = [f"{name} // new name!" if name in new else name for name in names]
    tag = "combined_alphabetical_sorted" if len(turns) > 1 else "alphabetical_sorted"
    return f"<{tag}>\n" + "\n".join(lines) + f"\n</{tag}>"


def _number(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")
