#!/bin/sh
# The arithmetic of bench/measure.py, with programs that write the times they are told to.
. "$UM_SRCDIR/tests/meta/tap.sh"

command -v python3 >/dev/null || {
    echo "1..0 # SKIP no python3"
    exit 0
}

# program NAME PLAIN HAND HAND2 COPIES UMRT PROFILE [OUTPUT]: the total of each variant, in ms. A step
# takes plain 500 ms.
mkdir -p "$scratch/bench/workloads" "$scratch/path"
program() {
    cat >"$scratch/bench/workloads/$1" <<END
#!/bin/sh
steps=1 variant=plain
while [ \$# != 0 ]; do
    case \$1 in
    --variants) printf 'plain\ncopies\nhand a\nhand2 b\n'; exit ;;
    --variant) variant=\$2; shift ;;
    --times) times=\$2; shift ;;
    --steps) steps=\$2; shift ;;
    --seconds) steps=\$((\${2%.*} * 2)); shift ;;
    --seed) [ \$2 != 2 ] || slow=1; shift ;;
    esac
    shift
done
variant=\${FAKE_UMRT:-\$variant}
case \$variant in
plain) total=$2 ;; hand) total=$3 ;; hand2) total=$4 ;; copies) total=$5; echo "copy 8.8" >>"\$times" ;;
umrt) total=$6 ;; profile) total=$7 ;;
esac
[ "\$total" != fails ] || { echo broken >&2; exit 7; }
[ -z "\$slow" ] || [ \$variant = plain ] || total=\$((total * 10))
i=0
while [ \$i -lt \$steps ]; do echo "step 500"; i=\$((i + 1)); done >>"\$times"
printf 'gpu 10\ntotal %s\n' "\$total" >>"\$times"
[ \$variant != umrt ] || [ -z "$8" ] || { echo "$8"; exit; }
echo 1234
END
    chmod +x "$scratch/bench/workloads/$1"
}

cat >"$scratch/umrt" <<'END'
#!/bin/sh
case "$1 $2" in
"--version ") echo "umrt fake" ;;
"run --help") echo "usage: $PROFILE_OPTION" ;;
"run --profile") [ -f "$3" ] || : >"$3"; shift 4; FAKE_UMRT=profile "$@" ;;
"run --") shift 2; FAKE_UMRT=umrt "$@" ;;
*) exit 9 ;;
esac
END
printf '#!/bin/sh\necho "Fake Card, 1.0"\n' >"$scratch/path/nvidia-smi"
chmod +x "$scratch/umrt" "$scratch/path/nvidia-smi"
PATH=$scratch/path:$PATH
export PROFILE_OPTION=--profile

# measure STATUS OPTION...: complains about another exit status.
measure() {
    want=$1
    shift
    rm -rf "$scratch/out"
    python3 "$UM_SRCDIR/bench/measure.py" --build "$scratch" --out "$scratch/out" "$@" >"$scratch/log" 2>&1
    status=$?
    [ $status = "$want" ] || { echo "exit status $status"; cat "$scratch/log"; }
}

# says TEXT...: complains when the table has no line with all of it, in this order.
says() {
    pattern=
    for text; do pattern="$pattern.*$text"; done
    grep -q -- "$pattern" "$scratch"/out/*-fake-card.md || { echo "no line: $*"; cat "$scratch"/out/*.md; }
}

plan 24
#       name  plain hand hand2 copies umrt profile
program fast  800   400  200   100    220  200
program even  100   90   95    80     95   90
ok "all demands met" measure 0 --rounds 2
ok "the best hand variant counts" says '| fast |' '800.0 \[' '200.0 \[' '220.0 \[' '| 1.100 | 1.000 | 3.636 | 4.000 | yes'
ok "migration-bound is a rule" says '| even |' '| 1.056 | 1.000 | 1.053 | 1.111 | no'
ok "cold: the geometric mean" says 'umrt over best hand, geometric mean' '| 1.077 | met | 2'
ok "the speed-up counts migration-bound programs alone" says 'plain over umrt' '| 3.636 | met | 1'
ok "the rate is that of pinned copies over that of the kernel" says '12: fast' 'umrt' '| 0.880 | met'
ok "a hopeless hand variant is not run again" \
    python3 -c 'import json, sys
ran = {p["program"]: p["variants"] for p in json.load(open(sys.argv[1]))["passes"]["ratios"]["programs"]}
assert [len(ran["fast"][v]["total_ms"]) for v in ("hand", "hand2", "plain")] == [1, 2, 2]' "$scratch"/out/*.json

program even  100   90   95    80     120  95
ok "a missed demand is the exit status" measure 1 --rounds 1
ok "it is marked" says 'umrt over best hand, geometric mean' '| 1.211 | MISSED'
ok "the worst is named" says 'profile over best hand, the worst' '| 1.056 | MISSED | even 1.056'

program even  100   fails 100  80     95   95
ok "a failing variant is the exit status" measure 1 --rounds 1
ok "it is named, with what it said" says 'even hand: exit status 7: broken'
ok "the others are measured" says '| even |' '100.0 \[' '| 0.950 | 0.950 |'

program even  100   95  100    80     95   95 other
ok "another output is the exit status" measure 1 --rounds 1
ok "the variants are named" says 'even: outputs differ: copies hand hand2 plain profile / umrt'

program even  100   95  100    80     103  95
ok "a long run slower than plain is the exit status" measure 1 long --rounds 1
ok "its steps last as long as asked" says '| even | 4 | 100.0 \[' '| 1.030 | 0.950 |'
ok "each slow one is named" says 'umrt over plain, long run, the worst' '1.030 | MISSED | even 1.030'

program random 100  0   0      0      101  101
ok "random programs: the median counts" measure 0 random --seeds 1-3 --rounds 1
ok "exceptions are listed" says 'median of 3 seeds' '| 1.010 | met | over it: seed 2 10.100'

mkdir -p "$scratch/examples"
cat >"$scratch/examples/launches" <<'END'
#!/bin/sh
while [ "$1" != --times ]; do shift; done
ms=1000
[ "$FAKE_UMRT" != umrt ] || ms=1004 # 0.2 us more for each of 20,000, 8 for each of 500
printf 'work %s\nloop %s\ncall %s\n' "$ms" "$ms" "$ms" >>"$2"
END
chmod +x "$scratch/examples/launches"
sed -i 's/^"run --profile/"record -o") shift 4; "$@" ;;\n&/' "$scratch/umrt"
ok "what a launch costs" measure 1 phases --rounds 1 --only launches
ok "by kind of launch" says 'launches loop, umrt: us_a_launch' '| 0.200 | met'

PROFILE_OPTION=
ok "a umrt without profiles" measure 0 ratios --rounds 1 --only fast
ok "that is said, not taken for met" says 'profile over best hand, geometric mean' '|  | not measured'
