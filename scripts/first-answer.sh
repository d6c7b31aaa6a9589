#!/usr/bin/env bash
# From nothing to a streamed answer: starts an executable, or whatever stands in its place, in an empty folder, makes a key, and
# asks for a stream. Says how long that took, and what the process has in memory.
#
#   scripts/first-answer.sh dist/release/gateway-0.1.0-linux-x64-musl
#   scripts/first-answer.sh qemu-aarch64-static -L /usr/aarch64-linux-gnu dist/release/gateway-0.1.0-linux-arm64
#   scripts/first-answer.sh npx --prefix /tmp/installed gateway
set -euo pipefail
command=()
for word in "$@"; do [ -e "$word" ] && word=$(realpath -s "$word"); command+=("$word"); done
folder=$(mktemp -d)
pid=
trap '[ -z "$pid" ] || kill -9 "$pid" 2>/dev/null || true; rm -rf "$folder"' EXIT
cd "$folder"
url=http://127.0.0.1:${PORT:-18081}
started=$(date +%s%N)
since() { echo "$((($(date +%s%N) - started) / 1000000)) ms"; }
HOST=127.0.0.1 PORT=${url##*:} GATEWAY_DATA=$folder/data "${command[@]}" start >log 2>&1 &
pid=$!
for _ in $(seq 1200); do
  curl -sf "$url/readyz" >/dev/null && break
  kill -0 "$pid" 2>/dev/null || { cat log; exit 1; }
  sleep 0.05
done
echo "ready after $(since)"
key=$(curl -sf -X POST "$url/v1/keys" | grep -oE 'or-live-[[:alnum:]]{32}' | head -n 1)
curl -sfN "$url/v1/chat/completions" -H "Authorization: Bearer $key" \
  -d '{"model":"gateway/auto:free","stream":true,"messages":[{"role":"user","content":"Hello, gateway!"}]}' | grep -x 'data: \[DONE\]'
echo "a streamed answer after $(since)"
[ ! -r "/proc/$pid/status" ] || grep VmRSS "/proc/$pid/status"
"${command[@]}" --version
"${command[@]}" audit --url "$url"
kill -TERM "$pid"
wait "$pid"
pid=
echo "stopped with 0"
