"""Background work that somebody waits for."""

import asyncio


async def send() -> None:
    await asyncio.sleep(0)


async def start() -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(send())


class Queue:
    def __init__(self) -> None:
        self.items: list[str] = []

    def __len__(self) -> int:
        return len(self.items)
