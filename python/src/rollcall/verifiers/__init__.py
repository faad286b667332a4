"""Play environments of PrimeIntellect's verifiers, unchanged, on rollouts that Rollcall hands out.

`python -m rollcall.verifiers worker ENVIRONMENT` runs in the virtual environment where the environment and its release
of verifiers are installed. `rollcall eval ENVIRONMENT` makes that virtual environment and starts the worker.
"""
