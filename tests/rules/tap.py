"""Test Anything Protocol, as much of it as the rule tests need."""

import sys


class Tap:
    def __init__(self):
        self.number = 0
        self.failures = 0

    def result(self, name, problems=()):
        """One line of TAP: fails when `problems` holds any text."""
        self.number += 1
        problems = list(problems)
        self.failures += bool(problems)
        print(f"{'not ok' if problems else 'ok'} {self.number} - {name}")
        for problem in problems:
            print(f"# {problem}")

    def finish(self):
        print(f"1..{self.number}")
        sys.exit(1 if self.failures else 0)
