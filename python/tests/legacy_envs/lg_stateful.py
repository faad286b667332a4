"""A tool with a hidden argument that comes from the state of the rollout."""

import verifiers as vf
from datasets import Dataset


async def remember(word: str, notes: list) -> str:
    """Adds a word to the notes.

    Args:
        word: the word
    """
    notes.append(word)
    return " ".join(notes)


class NotesEnv(vf.StatefulToolEnv):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.add_tool(remember, args_to_skip=["notes"])

    async def setup_state(self, state, **kwargs):
        state["notes"] = ["first"]
        return await super().setup_state(state, **kwargs)

    def update_tool_args(self, tool_name, tool_args, messages, state, **kwargs):
        return {**tool_args, "notes": state["notes"]}


def load_environment():
    rows = [{"question": f"remember {word}", "answer": word} for word in ("alpha", "beta")]

    def noted(state, answer):
        return 1.0 if state["notes"] == ["first", answer] else 0.0

    return NotesEnv(dataset=Dataset.from_list(rows), rubric=vf.Rubric(funcs=[noted]), max_turns=4)
