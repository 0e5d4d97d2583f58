"""What a rule cannot know: the data is our own, the name only names a cache file."""

import hashlib
import pickle
import shlex
import subprocess
from pathlib import Path

CACHE = Path("/var/cache/shop")


def cache_file(url: str) -> Path:
    return CACHE / hashlib.md5(url.encode()).hexdigest()


def cached(name: str) -> object:
    return pickle.loads((CACHE / name).read_bytes())


def grep(word: str) -> str:
    return subprocess.run(f"zgrep {shlex.quote(word)} /var/log/shop/*.gz", shell=True, check=False, text=True).stdout
