"""A headless browser, to see whether pages draw themselves."""

import shutil
import subprocess

MISSING = "no chromium here (package chromium)"


def browser():
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if shutil.which(name):
            return shutil.which(name)
    return None


def drawn(program, page, folder):
    """The document as the browser has it after its scripts, and what it said: why there is none, for example."""
    command = [program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", f"--user-data-dir={folder}/profile",
               "--virtual-time-budget=20000", "--dump-dom", f"file://{page}"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=240, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        return "", "the browser is not done after four minutes"
    return done.stdout, done.stderr[-2000:]
