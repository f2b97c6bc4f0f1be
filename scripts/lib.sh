# shellcheck shell=bash
# Shared by the setup scripts; source it. Each script is idempotent, quiet when there is nothing to do, and safe to run
# twice at once.
set -euo pipefail

# The cache is outside the checkout, so that a fresh clone finds it. test/rig looks in the same place.
cache=${OUTBOX_RELAY_CACHE:-${HOME:-/root}/.cache/outbox-relay}
# shellcheck disable=SC2034  # used by the scripts that source this
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

say() { echo "setup: $*" >&2; }

die() {
	say "$*"
	exit 1
}

# as_root COMMAND...: runs it as root.
as_root() {
	if [ "$(id -u)" = 0 ]; then
		"$@"
	elif command -v sudo >/dev/null; then
		sudo -- "$@"
	else
		die "root is needed for: $* (run this script as root, or install sudo)"
	fi
}

# have NAME...: whether all the programs are there; sbin is not in every user's PATH.
have() {
	local name
	for name in "$@"; do
		PATH=$PATH:/usr/sbin:/sbin command -v "$name" >/dev/null || return 1
	done
}

# quietly WHAT COMMAND...: hides the command's output unless it does not succeed.
quietly() {
	local what=$1 log
	shift
	log=$(mktemp)
	if ! "$@" >"$log" 2>&1; then
		cat "$log" >&2
		rm -f "$log"
		die "$what did not succeed, its output is above"
	fi
	rm -f "$log"
}

# once NAME FUNCTION: fills $cache/NAME by FUNCTION DIR, unless it is complete. Another run waits for this one; a run
# that was interrupted leaves nothing that looks complete.
once() {
	local name=$1 fill=$2
	if [ -e "$cache/$name/complete" ]; then
		return
	fi
	mkdir -p "$cache"
	(
		exec 9>"$cache/$name.lock"
		flock 9
		if [ -e "$cache/$name/complete" ]; then
			exit
		fi
		as_root rm -rf "$cache/$name" "$cache/$name.new"
		mkdir "$cache/$name.new"
		"$fill" "$cache/$name.new"
		touch "$cache/$name.new/complete"
		mv "$cache/$name.new" "$cache/$name"
	)
}
