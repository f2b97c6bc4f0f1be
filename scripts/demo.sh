#!/bin/bash
# The whole thing on this machine, with a verdict: see test/demo. `make demo` builds the relay first.
#
# usage: scripts/demo.sh [-transactions N] [-writers N]
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/setup-apt.sh mariadb-server
"${GO:-go}" build -o bin/demo ./test/demo
exec bin/demo -relay bin/outbox-relay "$@"
