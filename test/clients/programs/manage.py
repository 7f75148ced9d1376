"""Manages checks with the package healthchecks-io: each call of its management part, with its default version of the API."""

import json
import os

from healthchecks_io import CheckCreate, CheckUpdate, Client

URLS = {"api_url": os.environ["BASE_URL"].removesuffix("v1"), "ping_url": f"{os.environ['PING_URL']}/ping/"}
results = {}


def failure_of(act):
    try:
        act()
    except Exception as error:
        return type(error).__name__
    return None


for version in (1, 2, 3):
    with Client(api_key=os.environ["BOUND_KEY"], api_version=version, **URLS) as client:
        named = {"name": f"Backup {version}", "tags": f"nightly v{version}"}
        made = client.create_check(CheckCreate(**named, timeout=120, grace=60))
        same = client.create_check(CheckCreate(**named, unique=["name"]))
        changed = client.update_check(made.uuid, CheckUpdate(desc="changed"))
        client.success_ping(uuid=made.uuid, data="all is well")
        client.fail_ping(uuid=made.uuid)
        paused = client.pause_check(made.uuid)
        client.success_ping(uuid=made.uuid)
        results[version] = {
            "same": same.uuid == made.uuid,
            "desc": changed.desc,
            "paused": paused.status,
            "after": client.get_check(made.uuid).status,
            "found": [check.name for check in client.get_checks(tags=["nightly", f"v{version}"])],
            "pings": [[ping.type, ping.number_of_pings] for ping in client.get_check_pings(made.uuid)],
            "badges": sorted(client.get_badges()),
            "channels": [channel.name for channel in client.get_integrations()],
            "slot": client.create_check(CheckCreate(schedule="15 5 * * *", tz="Europe/Riga")).timeout,
            "invalid": failure_of(lambda: client.create_check(CheckCreate(timeout=59))),
            "deleted": client.delete_check(made.uuid).uuid == made.uuid,
            "gone": failure_of(lambda: client.get_check(made.uuid)),
        }
with Client(api_key="wrong", **URLS) as client:
    results["wrong"] = failure_of(client.get_checks)
with Client(api_key=os.environ["READ_KEY"], **URLS) as client:
    shown = client.get_checks()[0]
    results["read"] = [shown.uuid, client.get_check(shown.unique_key).name == shown.name]
print(json.dumps(results))
