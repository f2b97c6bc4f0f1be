#!/bin/bash
# The whole thing on this machine, with a verdict: see test/demo.
#
# usage: scripts/demo.sh [-transactions N] [-writers N]
set -euo pipefail
cd "$(dirname "$0")/.."

# On a fresh machine both take their time, one the network's, the other the processor's.
scripts/setup-apt.sh mariadb-server &
setup=$!
trap 'kill "$setup" 2>/dev/null || true' EXIT
# Both at once and with the flags of `make build`: what they share is compiled once, and all cores have work.
version=$(git describe --tags --always --dirty 2>/dev/null || echo devel)
CGO_ENABLED=0 "${GO:-go}" build -trimpath -ldflags "-s -w -X main.version=$version" -o bin/ ./cmd/outbox-relay ./test/demo
wait "$setup"
trap - EXIT
exec bin/demo -relay bin/outbox-relay "$@"
