import http.client
import sys
import time
import traceback
import urllib.request

URL = "{{url}}"


def main():
    print("here goes your job")


def heartbeat(signal, text=""):
    body = text.encode(errors="replace")[-10_000:]
    request = urllib.request.Request(URL + signal, data=body)
    for wait in (1, 2, 4, None):
        try:
            with urllib.request.urlopen(request, timeout=10):
                return
        except (OSError, http.client.HTTPException) as error:
            if wait is None or getattr(error, "code", 503) < 500:
                print(f"the heartbeat could not be sent: {error}", file=sys.stderr)
                return
        time.sleep(wait)


heartbeat("/start")
try:
    main()
except Exception:
    heartbeat("/1", traceback.format_exc())
    raise
heartbeat("/0")
