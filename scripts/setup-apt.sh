#!/bin/bash
# Debian packages: MariaDB, Redis, kcat, what brings MySQL (debootstrap) and Kafka (Java 17, Maven).
#
# usage: scripts/setup-apt.sh [PACKAGE...]   only these of them
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

policy=/usr/sbin/policy-rc.d

# package, and a program by which it is recognised
wanted="
mariadb-server:mariadbd
redis-server:redis-server
kcat:kcat
debootstrap:debootstrap
default-jre-headless:java
maven:mvn
"

only=" $* "

missing() {
	local entry
	for entry in $wanted; do
		[ "$only" = "  " ] || [[ $only == *" ${entry%%:*} "* ]] || continue
		have "${entry#*:}" || echo "${entry%%:*}"
	done
}

install_missing() {
	local packages
	mapfile -t packages < <(missing)
	[ ${#packages[@]} -gt 0 ] || return 0
	say "installing ${packages[*]} by apt-get"
	# The packages would start services of their own, on the usual ports: this file forbids it meanwhile.
	if [ ! -e "$policy" ]; then
		trap 'as_root rm -f "$policy"' EXIT
		as_root sh -c "printf '#!/bin/sh\nexit 101\n' >$policy && chmod 755 $policy"
	fi
	quietly "apt-get update" as_root apt-get update
	quietly "apt-get install ${packages[*]}" as_root env DEBIAN_FRONTEND=noninteractive \
		apt-get install -y --no-install-recommends "${packages[@]}"
	[ -z "$(missing)" ] || die "still missing after apt-get install: $(missing | tr '\n' ' ')"
}

if [ -n "$(missing)" ]; then
	mkdir -p "$cache"
	exec 9>"$cache/apt.lock"
	flock 9
	install_missing
fi
