#!/bin/bash
# MySQL 9.7 from a newer Debian than this one, unpacked beside it: nothing of it is installed into the system. Its own
# loader and libraries run it in place (see test/rig/internal/install).
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

# mirror: the one that apt's sources name, be it in the one-line ("deb URL suite") or in the deb822 format ("URIs: URL").
mirror() {
	local found
	found=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources 2>/dev/null |
		grep -E '^[[:space:]]*(deb[[:space:]]|URIs:)' | grep -oE 'https?://[^][:space:]]+' |
		grep debian | grep -v security | head -n 1) || true
	echo "${found:-http://deb.debian.org/debian}"
}

fill() {
	local dir=$1 from version
	from=$(mirror)
	say "unpacking MySQL 9.7 from $from (about a minute)"
	quietly "debootstrap from $from" as_root env PATH="$PATH:/usr/sbin:/sbin" debootstrap --variant=minbase \
		--include=mysql-server-core,mysql-client-core sid "$dir" "$from"
	as_root rm -rf "$dir/var/cache/apt" "$dir/var/lib/apt" "$dir/usr/share/doc" "$dir/usr/share/man"
	as_root chown "$(id -u)" "$dir" # for the stamp
	version=$(as_root chroot "$dir" /usr/sbin/mysqld --no-defaults --version)
	case "$version" in
	*" 9."*) ;;
	*) die "the mirror's MySQL is not 9.x but: $version" ;;
	esac
}

once mysql-9.7 fill
