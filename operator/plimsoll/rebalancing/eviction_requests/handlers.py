"""SHIM of M until N's arrives."""


class RequestHandlers:
    def __init__(self, requester, offer, machine, observer):
        self.immediate = {}
        self.awaited = {}


class RequestWatch:
    def __init__(self, **kw):
        self.offer = kw["offer"]
        self.clock = kw["clock"]

    async def run(self):
        while True:
            await self.clock.sleep(2.0)
            await self.offer.refresh()
