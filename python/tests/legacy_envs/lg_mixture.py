"""A group of environments, each with its own rubric."""

import lg_single
import lg_tool
import verifiers as vf


def load_environment():
    members = [lg_single.load_environment(texts=["abc", "raise"]), lg_tool.load_environment()]
    return vf.EnvGroup(envs=members, env_names=["single", "tool"])
