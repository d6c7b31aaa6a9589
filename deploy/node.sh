#!/bin/sh
# Runs a gateway on the first data folder that no other one holds: a container that takes another's place ships its journal.
# The gateway locks its folder; the lock file here only says which to try, and is held as long as the process lives.
set -eu
number=1
while :; do
  folder="/nodes/$number"
  mkdir -p "$folder"
  exec 9>"$folder/taken"
  if flock -n 9; then break; fi
  number=$((number + 1))
done
export GATEWAY_DATA="$folder"
exec bun /gateway/src/main.ts
