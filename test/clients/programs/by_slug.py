"""Pings by ping key and slug: borgmatic's hook, which creates the check, and then the package healthchecks-io."""

import json
import logging
import os

from borgmatic.hooks.monitoring import healthchecks
from borgmatic.hooks.monitoring.monitor import State
from healthchecks_io import Client

SLUG = "borg-backup"
ping_url, ping_key = os.environ["PING_URL"], os.environ["PING_KEY"]
hook = {"ping_url": f"{ping_url}/{ping_key}/{SLUG}", "create_slug": True}
for state in (State.START, State.FINISH):
    healthchecks.ping_monitor(hook, {}, "config.yaml", state, logging.INFO, False)

with Client(ping_key=ping_key, ping_url=f"{ping_url}/") as client:
    answers = [
        client.start_ping(slug=SLUG),
        client.exit_code_ping(3, slug=SLUG, data="exit 3"),
        client.success_ping(slug=SLUG),
        client.fail_ping(slug=SLUG, data="disk full"),
    ]
    try:
        client.success_ping(slug="unknown")
        unknown = None
    except Exception as error:
        unknown = type(error).__name__
print(json.dumps({"answers": answers, "unknown": unknown}))
