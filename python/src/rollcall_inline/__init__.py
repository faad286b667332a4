"""The in-process harness of the verifiers worker. See harness.py."""
