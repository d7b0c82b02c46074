#!/bin/sh
# Who may include whom, read from the include lines of every source file.
. "$UM_SRCDIR/tests/meta/tap.sh"

# violations DIR: prints "file:line: includes what" for each include its room does not allow.
violations() {
    cd "$1" || return 1
    # shellcheck disable=SC2016 # awk's own dollars
    find advisors cupti lib tools -name '*.[ch]' | sort | xargs -r awk '
        function exists(path,   line, found) {
            found = (getline line < path) >= 0
            close(path)
            return found
        }
        # The file of this tree that an include names, else the name as written.
        function resolve(name,   dir) {
            dir = FILENAME
            sub("[^/]*$", "", dir)
            if (exists(dir name)) {
                name = dir name
                while (sub("[^/]+/[.][.]/", "", name))
                    ;
                return name
            }
            if (exists("lib/" name)) return "lib/" name
            return name
        }
        BEGIN {
            libc = "^(assert|ctype|errno|float|inttypes|limits|math|signal|stdalign|stdarg|stdatomic" \
                   "|stdbool|stddef|stdint|stdio|stdlib|string|time)[.]h$"
            installed = "^lib/um_(event|advisor|runtime|trace)[.]h$"
        }
        /^[ \t]*#[ \t]*include/ {
            line = $0
            sub("^[^<\"]*", "", line)
            name = substr(line, 2)
            sub("[>\"].*", "", name)
            to = resolve(name)
            bad = 0
            if (FILENAME ~ /^advisors\//)
                bad = !(to ~ "^lib/um_(event|advisor)[.]h$" || to ~ "^advisors/" || name ~ libc)
            else if (FILENAME ~ installed)
                bad = !(to ~ installed || name ~ libc)
            else if (FILENAME ~ /^lib\//)
                bad = to ~ "^(cupti|tools)/" || name ~ "^(cu|nv|generated_)[a-zA-Z_]*(/.*)?[.]h$"
            else if (FILENAME ~ /^cupti\//)
                bad = to ~ "^tools/"
            else if (FILENAME ~ /^tools\//)
                bad = to ~ "^(lib|cupti|advisors)/" && !(to ~ installed || to ~ "^lib/(report|sim)/" ||
                      to ~ "^lib/trace/(export|import|schema)[.]h$" ||
                      to ~ "^lib/model/profile[.]h$" ||
                      to ~ "^lib/core/(config|note|recorder|regions|top)[.]h$")
            if (bad)
                print FILENAME ":" FNR ": includes " name
        }'
}

# plant FILE TEXT: a tree whose only sin is one include line.
plant() {
    rm -rf "$scratch/tree"
    mkdir -p "$scratch/tree/advisors" "$scratch/tree/cupti" "$scratch/tree/lib/core" \
        "$scratch/tree/lib/model" "$scratch/tree/tools"
    touch "$scratch/tree/lib/um_event.h" "$scratch/tree/lib/core/bus.h" \
        "$scratch/tree/cupti/load.h" "$scratch/tree/tools/um_tools.h"
    echo "$2" >"$scratch/tree/$1"
}
found_in() {
    plant "$1" "$2"
    violations "$scratch/tree"
}

plan 9
ok "every include line keeps the rules" violations "$UM_SRCDIR"
caught "an advisor that sees the core" found_in advisors/x.c '#include "core/bus.h"'
caught "an advisor that sees the system" found_in advisors/x.c '# include <pthread.h>'
caught "lib that sees the driver" found_in lib/model/x.c '#include <cuda.h>'
caught "lib that sees CUPTI" found_in lib/core/x.c '#include <cupti_activity.h>'
caught "lib that sees cupti/" found_in lib/core/x.c '#include "../../cupti/load.h"'
caught "an installed header that sees the core" found_in lib/um_trace.h '#include "core/bus.h"'
caught "a tool that sees the core" found_in tools/x.c '#include "core/bus.h"'
ok "an advisor that keeps the rules" found_in advisors/x.c '#include "um_event.h"'
