#!/bin/bash
url='{{url}}'
heartbeat() { curl -fsS -m 10 --retry 3 --retry-connrefused -o /dev/null "$@" || echo 'the heartbeat could not be sent' >&2; }
log=$(mktemp)
trap 'rm -f "$log"' EXIT

heartbeat "$url/start"
./your-job 2>&1 | tee "$log"
code=${PIPESTATUS[0]}
tail -c 10000 "$log" | heartbeat --data-binary @- "$url/$code"
exit "$code"
