#!/bin/sh
# The page as C: embed.sh DIR >page.c. A line "@include FILE" of page.html stands for that file, the
# line "@parts" for what a report puts in.
set -eu
quote() { sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/??/?\\?/g' -e 's/.*/    "&\\n",/' "$@"; }

printf '/* Made by embed.sh from page.html, page.css and page.js. */\n#include <stddef.h>\n\n'
for part in head tail; do
    printf 'extern const char *const um_html_%s[];\n' $part
done
printf '\nconst char *const um_html_head[] = {\n'
while IFS= read -r line; do
    case $line in
    @include\ *) quote "$1/${line#@include }" ;;
    @parts) printf '    NULL,\n};\n\nconst char *const um_html_tail[] = {\n' ;;
    *) printf '%s\n' "$line" | quote ;;
    esac
done <"$1/page.html"
printf '    NULL,\n};\n'
