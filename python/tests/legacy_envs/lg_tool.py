"""Tools: one that works, one that raises an ordinary error, one that ends the rollout."""

import verifiers as vf
from datasets import Dataset


def double(number: int) -> int:
    """Doubles a number.

    Args:
        number: the number
    """
    return 2 * number


def explode(number: int) -> int:
    """Raises an error.

    Args:
        number: a number
    """
    raise ValueError(f"{number} is too much")


def load_environment():
    rows = [{"question": f"use {name}", "answer": "6"} for name in ("double", "explode", "nothing")]

    def right(completion, answer):
        return 1.0 if completion[-1]["content"] == answer else 0.0

    return vf.ToolEnv(
        dataset=Dataset.from_list(rows), tools=[double, explode], rubric=vf.Rubric(funcs=[right]), max_turns=4
    )
