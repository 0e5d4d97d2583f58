"""An asynchronous service that stops for everybody."""

import subprocess
import time

import requests


async def poll() -> None:
    time.sleep(1)


async def status(url: str) -> int:
    return requests.get(url, timeout=1).status_code


async def build() -> None:
    subprocess.run(["/usr/bin/make"], check=True)
