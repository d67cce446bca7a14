"""The collector of a live demonstration, in a process of its own: it stops when its standard input ends."""

import json
import sys
from pathlib import Path

from hubbub.demo.programs import terminate_when_input_ends


def main() -> int:
    """Read one line of settings, serve, and write one line once requests are answered."""
    from hubbub.alarms.plan import AlarmPlan
    from hubbub.dashboard.pages import dashboard
    from hubbub.questions import read_collection
    from hubbub.service.base.logs import set_up
    from hubbub.service.base.trusted_clock import TrustedClock, hold_for
    from hubbub.service.collector.collector import Collector
    from hubbub.service.http.problems import Tokens
    from hubbub.service.http.server import KeyFolder, bind, run
    from hubbub.service.store import open_store
    from hubbub.service.webhooks.config import Webhook, read_secrets

    set_up()
    settings = json.loads(sys.stdin.readline())
    folder = Path(settings["folder"])
    secrets = KeyFolder(folder / "keys")
    keys, tokens = secrets.keys(), Tokens([secrets.token()])
    try:
        listening = bind("127.0.0.1", settings["port"])
    except OSError as error:
        print(f"port {settings['port']} cannot be used ({error.strerror}); 0 takes a free one", file=sys.stderr)
        return 1
    collections = [read_collection(spec) for spec in settings["collections"]]
    store = open_store(f"sqlite:///{folder / 'hubbub.db'}")
    clock = TrustedClock(store.clock(), hold=hold_for(collections))
    alarms = {name: AlarmPlan.from_spec(spec) for name, spec in settings["alarms"].items()}
    collector = Collector(collections, store, clock=clock, keys=keys, alarms=alarms)
    webhooks = [Webhook("demo", settings["webhook"]["url"], read_secrets("secret", settings["webhook"]["secret"]))]

    def ready() -> None:
        # From here on a signal is a request to stop; whoever started this need not live to send it.
        terminate_when_input_ends()
        print(json.dumps({"port": listening.getsockname()[1], "public_key": keys.public.hex()}), flush=True)

    # The pages are for everyone who can reach this machine's own address.
    return run(collector, tokens, [listening], routes=dashboard(None), on_ready=ready, webhooks=webhooks)


if __name__ == "__main__":
    sys.exit(main())
