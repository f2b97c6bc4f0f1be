#!/bin/bash
# Installs what tests and lint need, where it is missing.
#
# usage: scripts/setup.sh all|servers|lint
set -euo pipefail
dir=$(cd "$(dirname "$0")" && pwd)

servers() {
	"$dir/setup-apt.sh"
	"$dir/setup-mysql.sh"
	"$dir/setup-kafka.sh"
}

case "${1-}" in
all)
	# Building the linter keeps a core busy while the others mostly download.
	"$dir/setup-lint.sh" &
	lint=$!
	failed=0
	servers || failed=1
	wait "$lint" || failed=1
	exit "$failed"
	;;
servers) servers ;;
lint) "$dir/setup-lint.sh" ;;
*)
	echo "usage: $0 all|servers|lint" >&2
	exit 2
	;;
esac
