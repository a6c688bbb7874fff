#!/bin/sh
# Turns the package list of `go build -v` into a counter, one line in fifty
# packages, and passes everything else (errors) through.
name=$1
n=0
while IFS= read -r line; do
	case $line in
	'' | '#'* | *' '* | *:*) printf '%s\n' "$line" ;;
	go:*) ;;
	*)
		n=$((n + 1))
		[ $((n % 50)) -eq 0 ] && printf '  %s: %d packages\n' "$name" "$n"
		;;
	esac
done
exit 0
