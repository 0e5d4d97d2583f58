"""The engine in this process: effects on asyncio, the record in a journal."""
