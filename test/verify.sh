#!/bin/sh
# Fails when what is generated, formatted or tidied differs from what is committed. Works
# on a copy, so that it neither needs a clean tree nor changes it.
set -eu
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
git ls-files -z --cached --others --exclude-standard | tar --null --ignore-failed-read -T - -cf - 2>/dev/null | tar -xf - -C "$copy"
cd "$copy"
git init -q . && git add -A && git -c user.name=verify -c user.email=verify@localhost commit -qm verify

make -s generate
go mod tidy
unformatted=$(gofmt -l $(git ls-files '*.go'))
if [ -n "$unformatted" ]; then
	printf 'not formatted, run `make fmt`:\n%s\n' "$unformatted" >&2
	exit 1
fi
if ! git diff --exit-code --stat; then
	echo 'generated files or go.mod are not up to date: run `make generate` and `go mod tidy`, and commit' >&2
	exit 1
fi
echo 'verify: generated files, formatting and go.mod are up to date'
