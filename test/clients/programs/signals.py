"""Sends each signal with the package healthchecks-io, the last one with more text than is stored."""

import json
import os

from healthchecks_io import Client

public_id = os.environ["PUBLIC_ID"]
with Client(ping_url=f"{os.environ['PING_URL']}/ping/") as client:
    answers = [
        client.start_ping(uuid=public_id),
        client.success_ping(uuid=public_id, data="all is well"),
        client.exit_code_ping(9, uuid=public_id, data="exit 9"),
        client.success_ping(uuid=public_id),
        client.fail_ping(uuid=public_id, data="x" * 29_000 + "the end"),
    ]
print(json.dumps(answers))
