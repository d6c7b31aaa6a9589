r"""
What software of others makes of deliveries and of the export, on real sockets: Standard Webhooks for Python verifies every
delivery of a storm of kills, DuckDB reads from moto's S3 what the audit says, after as many, and the names of telemetry are in
OpenTelemetry's registry.

    python3 -m venv /tmp/outside && /tmp/outside/bin/pip install standardwebhooks duckdb boto3 'moto[server]' \
        opentelemetry-semantic-conventions
    /tmp/outside/bin/python test/process/outside.py 100
"""

import json
import logging
import os
import re
import subprocess
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import boto3
import duckdb
import opentelemetry.semconv
from moto.server import ThreadedMotoServer
from standardwebhooks import Webhook

logging.getLogger("werkzeug").setLevel(logging.ERROR)
KILLS = sys.argv[1] if len(sys.argv) > 1 else "5"


def storm(script, **env):
    run = ["bun", "run", f"test/process/{script}.ts", KILLS]
    out = subprocess.run(run, env={**os.environ, **env}, check=True, stdout=subprocess.PIPE).stdout
    return json.loads(out)


class Verifier(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    verified = refused = 0

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        headers = {name.lower(): value for name, value in self.headers.items()}
        try:
            Webhook(headers["secret"]).verify(body, headers)
            Verifier.verified += 1
            self.send_response(204)
        except Exception as error:
            print(error, body, file=sys.stderr)
            Verifier.refused += 1
            self.send_response(400)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


def webhooks():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Verifier)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    report = storm("webhook-storm", WEBHOOK_VERIFIER=f"http://127.0.0.1:{server.server_port}")
    print("webhooks", report, "verified", Verifier.verified, "refused", Verifier.refused)
    assert report["missing"] == [] and report["withSeveralIds"] == 0 and report["drifts"] == 0
    assert Verifier.verified > 0 and Verifier.refused == 0


def export():
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    access = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": "us-east-1"}
    address = f"http://{host}:{port}"
    s3 = boto3.client(
        "s3",
        endpoint_url=address,
        region_name="us-east-1",
        aws_access_key_id="test",
        aws_secret_access_key="test",
    )
    s3.create_bucket(Bucket="books")
    report = storm("export-storm", AWS_ENDPOINT_URL_S3=address, **access)
    with tempfile.TemporaryDirectory() as folder:
        for page in s3.get_paginator("list_objects_v2").paginate(Bucket="books"):
            for entry in page["Contents"]:
                path = os.path.join(folder, entry["Key"])
                os.makedirs(os.path.dirname(path), exist_ok=True)
                s3.download_file("books", entry["Key"], path)
        query = "SELECT {} FROM read_json_auto('{}/gateway/{}/**/*.jsonl.gz', union_by_name = true)"
        receipts = "count(*), count(DISTINCT id), sum(charged_nano_usd)"
        [(rows, ids, charged)] = duckdb.sql(query.format(receipts, folder, "receipts")).fetchall()
        [(credited,)] = duckdb.sql(query.format("sum(amount_nano_usd)", folder, "entries")).fetchall()
    server.stop()
    print("export", report, "DuckDB:", {"rows": rows, "charged": charged, "credited": credited})
    assert rows == ids and rows >= report["served"] > 0 and report["drifts"] == 0
    assert str(charged) == report["charges"] and str(credited) == report["credits"]


def names(folder, pattern):
    texts = (path.read_text() for path in Path(folder).rglob(pattern))
    return {name for text in texts for name in re.findall(r'"(gen_ai\.[a-z_.]+)"', text)}


def registry():
    used = names("src/telemetry", "*.ts")
    known = names(Path(opentelemetry.semconv.__file__).parent, "*.py")
    print("registry", len(used), "names, not in it:", sorted(used - known))
    assert used and used <= known


registry()
webhooks()
export()
