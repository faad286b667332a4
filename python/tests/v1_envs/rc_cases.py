"""A taskset with one task for each way in which a rollout can end."""

from __future__ import annotations

import verifiers.v1 as vf

__all__ = ["CasesTaskset"]

CASES = ("good", "raise", "metric", "nan", "400", "500", "flaky", "setup")


class CasesConfig(vf.TasksetConfig):
    cases: tuple[str, ...] = CASES


class CasesData(vf.TaskData):
    case: str


class CasesTask(vf.Task[CasesData, vf.State, vf.TaskConfig]):
    async def setup(self, trace: vf.Trace) -> None:
        if self.data.case == "setup":
            raise RuntimeError("the task cannot be set up")

    @vf.reward(weight=0.5)
    async def right(self, trace: vf.Trace) -> float:
        if self.data.case == "raise":
            raise RuntimeError("the reward function is broken")
        return float("nan") if self.data.case == "nan" else 1.0

    @vf.metric
    async def length(self, trace: vf.Trace) -> float:
        if self.data.case == "metric":
            raise RuntimeError("the metric is broken")
        return float(len(trace.assistant_messages))


class CasesTaskset(vf.Taskset[CasesTask, CasesConfig]):
    def load(self) -> list[CasesTask]:
        data = [
            CasesData(idx=idx, prompt=f"case {case}", system_prompt="Answer.", case=case)
            for idx, case in enumerate(self.config.cases)
        ]
        return [CasesTask(each, self.config.task) for each in data]
