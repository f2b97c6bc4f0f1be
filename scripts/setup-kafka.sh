#!/bin/bash
# Kafka's libraries from Maven Central; kafka-pom.xml names the version.
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

fill() {
	local dir=$1
	say "copying Kafka's libraries by Maven"
	# Maven's own downloads stay beside them until the end only.
	quietly "mvn dependency:copy-dependencies" mvn -q -B -f "$here/kafka-pom.xml" -Dmaven.repo.local="$dir/m2" \
		dependency:copy-dependencies -DoutputDirectory="$dir/libs"
	rm -rf "$dir/m2"
	compgen -G "$dir/libs/kafka_*.jar" >/dev/null || die "Maven brought no kafka_*.jar"
}

once kafka-4.1 fill
