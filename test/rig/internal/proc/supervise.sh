#!/bin/bash
# Runs one server so that it outlives neither this process nor the owner (a test binary, or the rig command).
#
# usage: bash supervise.sh DIR COMMAND [ARGUMENT...]
# Standard input is a pipe whose other end only the owner holds: the kernel closes it however the owner ends, by
# return, panic or SIGKILL. Prints the server's process id. The server's output goes to DIR/log.
# When the server ends first, its status is left in DIR/exit. When the owner does, DIR is removed.
set -u
dir=$1
shift
exec 3<&0 </dev/null

setpriv --pdeathsig KILL -- "$@" >>"$dir/log" 2>&1 3<&- &
server=$!
# stdout is closed in the guard: the owner reads ours to its end.
cat <&3 >/dev/null 2>&1 &
guard=$!
echo "$server"
exec >/dev/null 3<&-

wait -n "$server" "$guard"
status=$?
if kill -0 "$guard" 2>/dev/null; then
	echo "$status" >"$dir/exit.new" && mv "$dir/exit.new" "$dir/exit"
	kill -KILL "$guard"
	wait "$guard" 2>/dev/null
else
	kill -KILL "$server" 2>/dev/null
	wait "$server" 2>/dev/null
	rm -rf -- "$dir"
fi
