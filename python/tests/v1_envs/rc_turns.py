"""Several turns of a scripted user, as many as the task says."""

from __future__ import annotations

import verifiers.v1 as vf

__all__ = ["TurnsEnv", "TurnsTaskset"]


class TurnsData(vf.TaskData):
    turns: int


class TurnsTask(vf.Task[TurnsData, vf.State, vf.TaskConfig]):
    @vf.reward(weight=0.25)
    async def answered(self, trace: vf.Trace) -> float:
        return float(len(trace.assistant_messages))

    @vf.reward
    async def repeated(self, trace: vf.Trace) -> float:
        return float(trace.last_reply == f"turn {self.data.turns - 1}")


class TurnsEnv(vf.SingleAgentEnv):
    async def run(self, task, agents):
        async with agents.agent.interaction(task) as interaction:
            segment = await interaction.turn()
            for turn in range(1, task.data.turns):
                if segment.terminated:
                    break
                segment = await interaction.turn(f"turn {turn}")


class TurnsTaskset(vf.Taskset[TurnsTask, vf.TasksetConfig]):
    def load(self) -> list[TurnsTask]:
        return [
            TurnsTask(TurnsData(idx=idx, prompt=f"task of {turns} turns", turns=turns), self.config.task)
            for idx, turns in enumerate((2, 3, 5))
        ]
