"""The platform's `calculator` with one step and numbers up to 9: the same questions, tools and rewards."""

import random
import re

import verifiers as vf
from datasets import Dataset

SIGNS = ("+", "*", "-")


def add(a: float, b: float) -> float:
    """Add two numbers.

    Args:
        a: left operand
        b: right operand
    """
    return a + b


def subtract(a: float, b: float) -> float:
    """Subtract the second number from the first.

    Args:
        a: left operand
        b: right operand
    """
    return a - b


def multiply(a: float, b: float) -> float:
    """Multiply two numbers.

    Args:
        a: left operand
        b: right operand
    """
    return a * b


def rows(count):
    drawn = random.Random(3)
    for _ in range(count):
        sign, a, b = drawn.choice(SIGNS), drawn.randint(1, 9), drawn.randint(1, 9)
        if sign == "-":
            a, b = max(a, b), min(a, b)
        value = {"+": a + b, "*": a * b, "-": a - b}[sign]
        yield {"question": f"What is {a} {sign} {b}?", "answer": str(value)}


def right(completion, answer):
    content = completion[-1].get("content") if completion[-1]["role"] == "assistant" else None
    numbers = re.findall(r"-?\d+(?:\.\d+)?", (content or "").replace(",", ""))
    return float(bool(numbers) and float(numbers[-1]) == float(answer))


def brief(completion):
    return float(len(completion) <= 3)


def load_environment(count=2000):
    return vf.ToolEnv(
        dataset=Dataset.from_list(list(rows(count))),
        tools=[add, subtract, multiply],
        rubric=vf.Rubric(funcs=[right, brief], weights=[1.0, 0.1]),
        max_turns=4,
    )
