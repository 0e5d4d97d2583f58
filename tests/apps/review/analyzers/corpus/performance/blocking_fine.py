"""An asynchronous service that lets others work."""

import asyncio
import time


async def poll() -> None:
    await asyncio.sleep(1)


def wait() -> None:
    time.sleep(1)


async def build() -> None:
    process = await asyncio.create_subprocess_exec("/usr/bin/make")
    await process.wait()
