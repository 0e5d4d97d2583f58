"""Background work."""

import asyncio


async def send() -> None:
    await asyncio.sleep(0)


async def start() -> None:
    asyncio.create_task(send())


class Queue:
    def __init__(self) -> None:
        self.items = []
        return self.items

    def __len__(self) -> int:
        return "many"
