#!/bin/sh
# Builds the server and every driver, runs the matrix, prints the tables.
# All arguments go to runall: -only REGEXP (rows), -drivers REGEXP, -runs N, -out FILE, -wait D.
# A driver that does not build is left out, with a line saying so; with BENCH_STRICT=1 that
# is an error.
set -eu
cd "$(dirname "$0")"
mkdir -p bin
(cd server && go build -o ../bin/server .)
(cd kit && go build -o ../bin/runall ./cmd/runall && go build -o ../bin/summary ./cmd/summary)
for d in drivers/*/; do
	n=$(basename "$d")
	if ! (cd "$d" && go build -o "../../bin/$n" .); then
		echo "driver $n does not build" >&2
		rm -f "bin/$n"
		[ "${BENCH_STRICT:-}" != 1 ] || exit 1
	fi
done
exec bin/runall -dir . "$@"
