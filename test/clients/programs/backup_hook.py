"""Runs borgmatic's own hook for healthchecks: a backup that succeeds and one that fails, both with 30 KB of logs."""

import logging
import os

from borgmatic.hooks.monitoring import healthchecks
from borgmatic.hooks.monitoring.monitor import State

# `send_logs` with the hook's own limit, 100,000 bytes.
hook = {"ping_url": f"{os.environ['PING_URL']}/ping/{os.environ['PUBLIC_ID']}", "send_logs": True}
log = logging.getLogger("backup")
# borgmatic has a handler for its console, too.
logging.getLogger().addHandler(logging.NullHandler())


def run(last: State, line: str) -> None:
    healthchecks.initialize_monitor(hook, {}, "config.yaml", logging.INFO, False)
    healthchecks.ping_monitor(hook, {}, "config.yaml", State.START, logging.INFO, False)
    for number in range(1000):
        log.info("%s %04d of the backup", line, number)
    healthchecks.ping_monitor(hook, {}, "config.yaml", last, logging.INFO, False)
    healthchecks.destroy_monitor(hook, {}, logging.INFO, False)


run(State.FINISH, "wrote chunk")
run(State.FAIL, "cannot write")
