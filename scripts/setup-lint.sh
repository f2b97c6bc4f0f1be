#!/bin/bash
# golangci-lint, built from source so that it agrees with the Go version in use.
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

version=v2.15.0
program=$cache/bin/golangci-lint

current() { [ -x "$program" ] && "$program" version 2>/dev/null | grep -q "version ${version#v}\b\|version $version\b"; }

if ! current; then
	mkdir -p "$cache/bin"
	exec 9>"$cache/lint.lock"
	flock 9
	if ! current; then
		say "building golangci-lint $version (a few minutes, once)"
		# Into another folder first: go install does not replace the file at once.
		quietly "go install golangci-lint" env GOBIN="$cache/bin.new" GOFLAGS= \
			go install "github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$version"
		mv "$cache/bin.new/golangci-lint" "$program"
		rmdir "$cache/bin.new"
	fi
	current || die "$program is not $version"
fi
