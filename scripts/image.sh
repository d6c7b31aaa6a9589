#!/usr/bin/env bash
# Builds the image without a daemon, and starts it as it is meant to run: as its user, on a read-only root, with one volume.
#
#   npm run release -- --dry-run --only bun-linux-x64
#   scripts/image.sh [dist/release/image]
#
# Needs root, buildah and mmdebstrap (Debian's packages). The base is made of the packages that
# gcr.io/distroless/base-debian12 consists of, so that no registry of images is asked. BASE=<image> takes another.
set -euo pipefail
context=${1:-dist/release/image}
tag=localhost/text-generation-gateway
work=$(mktemp -d)
port=${PORT:-18080}
container=
trap 'kill %1 2>/dev/null || true; [ -z "$container" ] || buildah rm "$container" >/dev/null; rm -rf "$work"' EXIT
export BUILDAH_ISOLATION=${BUILDAH_ISOLATION:-chroot} STORAGE_DRIVER=${STORAGE_DRIVER:-vfs}

base=${BASE:-}
if [ -z "$base" ]; then
  base=localhost/gateway-base
  mmdebstrap --quiet --variant=extract --include=base-files,netbase,tzdata,libc6,libssl3,ca-certificates bookworm "$work/root"
  # What ca-certificates does when it is configured.
  cat "$work"/root/usr/share/ca-certificates/mozilla/*.crt > "$work/root/etc/ssl/certs/ca-certificates.crt"
  printf 'root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin\n' > "$work/root/etc/passwd"
  printf 'root:x:0:\nnonroot:x:65532:\n' > "$work/root/etc/group"
  rm -rf "$work"/root/usr/share/{doc,man,locale} "$work"/root/var/{cache,lib/apt}
  container=$(buildah from scratch)
  buildah copy --quiet "$container" "$work/root" / >/dev/null
  buildah commit --quiet "$container" "$base" >/dev/null
  buildah rm "$container" >/dev/null
fi
buildah build --quiet --format docker --build-arg BASE="$base" --tag "$tag" "$context" >/dev/null
container=$(buildah from "$tag")
root=$(buildah mount "$container")
echo "built $tag: $(du -sm "$root" | cut -f1) MB, of which the gateway $(du -sm "$root/usr/local/bin/gateway" | cut -f1)"

# What a container's runtime does: namespaces, a read-only root, the volume, the image's user, no new privileges.
cp -a "$root/data" "$work/data"
inside() {
  unshare --mount --pid --fork --kill-child bash -c '
    set -e
    mount --bind "$1" "$1" && mount -o remount,bind,ro "$1"
    mount -t proc proc "$1/proc" && mount --rbind /dev "$1/dev" && mount --bind "$2" "$1/data"
    root=$1; shift 2
    exec setpriv --no-new-privs chroot --userspec=65532:65532 "$root" "$@"
  ' bash "$root" "$work/data" "$@"
}
started=$(date +%s%N)
HOST=127.0.0.1 PORT=$port GATEWAY_DATA=/data inside /usr/local/bin/gateway start >"$work/log" 2>&1 &
url=http://127.0.0.1:$port
for _ in $(seq 600); do curl -sf "$url/readyz" >/dev/null && break; sleep 0.1; done
key=$(curl -sf -X POST "$url/v1/keys" | grep -oE 'or-live-[[:alnum:]]{32}' | head -n 1)
curl -sfN "$url/v1/chat/completions" -H "Authorization: Bearer $key" \
  -d '{"model":"gateway/auto:free","stream":true,"messages":[{"role":"user","content":"Hello, gateway!"}]}' | tail -n 2
echo "from nothing to a streamed answer: $((($(date +%s%N) - started) / 1000000)) ms"
process=$(pgrep -n -f "^/usr/local/bin/gateway start")
grep -E '^(Uid|NoNewPrivs|CapEff):' "/proc/$process/status"
GATEWAY_DATA=/data inside /usr/local/bin/gateway audit --url "$url"
kill -TERM "$process"
while kill -0 "$process" 2>/dev/null; do sleep 0.1; done
tail -n 1 "$work/log"
ls -l "$work/data"
