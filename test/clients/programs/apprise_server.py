"""The endpoints `notify` of Apprise API, by its apprise_api/api/views.py, with the library. Ends with its input."""

import json
import logging
import os
import re
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import apprise

# What the server stores: by key, URLs and their tags.
STORED = json.loads(os.environ["STORED"])


def parse_tags(tag):
    groups = [re.split(r"[\s&+]+", group) for group in re.split(r"\s*[|,]\s*", tag)]
    return [tuple(group) if len(group) > 1 else group[0] for group in groups]


class Server(BaseHTTPRequestHandler):
    def do_POST(self):
        content = json.loads(self.rfile.read(int(self.headers["content-length"])))
        key = re.fullmatch(r"/notify(?:/([\w-]{1,128}))?/?", self.path)
        if key is None:
            return self.answer(404, "not found")
        if not content.get("body") or content.get("type", "info") not in apprise.NOTIFY_TYPES:
            return self.answer(400, "Payload lacks minimum requirements")
        if content.get("format", "text") not in apprise.NOTIFY_FORMATS:
            return self.answer(400, "An invalid body input format was specified")
        tag = parse_tags(content["tag"]) if content.get("tag") else None
        services = apprise.Apprise(asset=apprise.AppriseAsset(body_format=content.get("format", "text")))
        if key[1] is None:
            tag = tag or "all"
            services.add(content.get("urls"))
        for url, tags in STORED.get(key[1], []):
            services.add(url, tag=tags or None)
        if not len(services):
            return self.answer(204, "")
        level = logging.getLevelName(self.headers.get("x-apprise-log-level", "INFO"))
        with apprise.LogCapture(level=level, fmt="%(asctime)s [%(levelname)s] %(name)s: %(message)s") as logs:
            sent = services.notify(
                content["body"], title=content.get("title", ""), notify_type=content.get("type", "info"), tag=tag
            )
        self.answer(200 if sent else 424, logs.getvalue() or ("" if sent else "One or more notification could not be sent"))

    def answer(self, status, text):
        self.send_response(status)
        if status != 204:
            self.send_header("content-length", str(len(text.encode())))
            self.send_header("content-type", "text/plain")
        self.end_headers()
        if status != 204:
            self.wfile.write(text.encode())

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(server.server_port, flush=True)
sys.stdin.read()
