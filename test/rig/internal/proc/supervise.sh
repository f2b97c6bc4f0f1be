#!/bin/bash
# Runs one server so that it outlives neither this process nor the owner (a test binary, or the rig command).
#
# usage: bash supervise.sh DIR COMMAND [ARGUMENT...]
# Standard input is a pipe whose other end only the owner holds. The owner writes "keep" when it is done with the
# server; when it ends before that, by return, panic or SIGKILL, the kernel closes the pipe: the server is killed and DIR
# removed. Prints the server's process id. The server's output goes to DIR/log, its status to DIR/exit.
set -u
dir=$1
shift
exec 3<&0 </dev/null

# The kernel kills the server when this shell dies. Had it died before that was asked for, the server's parent would be
# another process by now.
# shellcheck disable=SC2016 # expanded by the inner shell
setpriv --pdeathsig KILL -- bash -c '[ "$PPID" = "$1" ] && shift && exec "$@"' server $$ "$@" >>"$dir/log" 2>&1 3<&- &
server=$!
(
	IFS= read -r word <&3
	[ "${word-}" = keep ] && exit 0
	kill -KILL "$server"
	exit 1
) >/dev/null 2>&1 &
guard=$!
echo "$server"
exec >/dev/null 2>&1 3<&-

wait "$server"
echo $? >"$dir/exit.new" && mv "$dir/exit.new" "$dir/exit"
wait "$guard" || rm -rf -- "$dir"
