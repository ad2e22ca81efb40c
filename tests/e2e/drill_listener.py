"""A program that uet-drill plays against, and a pipe over which its scripts make it initiate."""

import os
import subprocess
import threading
import time

from harness import Job


class Listener:
    """A process that says "ready" and then takes lines that make it initiate."""

    def __init__(self, folder, name, command, env):
        self.fifo = os.path.join(folder, f"{name}.in")
        self.job = Job(command, env, folder, name, stdin=subprocess.PIPE)
        os.mkfifo(self.fifo)
        threading.Thread(target=self.pass_lines, daemon=True).start()
        end = time.monotonic() + 60
        while "ready" not in self.job.output()[0]:
            if self.job.process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(self.job.report(self.job.process.poll()))
            time.sleep(0.02)

    def pass_lines(self):
        """What scripts write into the pipe goes to the process; several may open it one after the other."""
        with os.fdopen(os.open(self.fifo, os.O_RDWR), "rb", buffering=0) as lines:
            while True:
                line = lines.read(4096)
                if line == b"end\n" or self.job.process.poll() is not None:
                    return
                self.job.process.stdin.write(line)
                self.job.process.stdin.flush()

    def command(self):
        return f'echo $UET_DRILL_OPERATION $UET_DRILL_BYTES $UET_DRILL_ADDRESS > "{self.fifo}"'

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with open(self.fifo, "wb", buffering=0) as lines:
            lines.write(b"end\n")
        self.job.process.stdin.close()
        if self.job.wait(10) is None:
            self.job.kill()
