#!/usr/bin/env bash
# What umrt replay cannot do is one line that names it, and status 2.
# shellcheck source=tests/cli/tap.sh
. "$UM_SRCDIR/tests/cli/tap.sh"

refuses() { # PATTERN ARGUMENT...
    local pattern=$1
    shift
    gives 2 timeout 300 "$umrt" replay "$@" && one_line && says "^umrt: .*$pattern" &&
        { [ ! -s "$out" ] || { echo "printed a result"; return 1; }; }
}
"$umrt" gen stream -o good.umt -s 16M -n 1 >/dev/null

ok "no file" refuses 'no file given'
ok "an unknown policy, with the nearest" refuses "no policy 'frist_touch'; did you mean 'first_touch'\?.*none, driver" -p frist_touch good.umt
ok "an unknown policy like none, with those there are" refuses "no policy 'xyzzyplugh'; there are none, driver" -p xyzzyplugh good.umt
ok "an advisor that there is none of, among others" refuses "no policy 'run\\+frist_touch'" -p run+frist_touch good.umt
ok "the same once more" refuses "no policy 'run\\+run'" -p run+run good.umt
ok "a second run of nobody" refuses "no policy '\\+again'" -p +again good.umt
ok "an empty policy" refuses "empty element in 'ahead,'" -p ahead, good.umt
ok "an unknown machine, with those there are" refuses "h300.*h200-pcie5" -m h300 good.umt
ok "a machine that is no file" refuses 'nowhere\.json' -m nowhere.json good.umt
echo '{"schema": "umrt.machine/1", "name": "x"}' >half.json
ok "a machine without figures" refuses 'half\.json' -m half.json good.umt
ok "no memory" refuses '--gpu-mem: 0 is less than one block' -g 0 good.umt
ok "less than one block" refuses '--gpu-mem: 1M is less than one block of 2 MiB' -g 1M good.umt
ok "no per cent" refuses '--gpu-mem: 0% is not within 1% and 1000%' -g 0% good.umt
ok "more per cent than sensible" refuses '--gpu-mem: 2000% is not within' -g 2000% good.umt
ok "parts of a per cent" refuses "'1\.5%' is not a whole number" -g 1.5% good.umt
ok "memory of no unit" refuses "--gpu-mem: '16X' is neither a size" -g 16X good.umt
ok "no streams" refuses "--streams takes 0 to" -s few good.umt
ok "an unknown parameter of the driver, with the nearest" refuses "no parameter 'uvm_perf_prefetch_treshold'; did you mean 'uvm_perf_prefetch_threshold'" -u uvm_perf_prefetch_treshold=1 good.umt
ok "a parameter outside its range" refuses "uvm_perf_prefetch_threshold takes 1 to 100, not '101'" -u uvm_perf_prefetch_threshold=101 good.umt
ok "a parameter without a value" refuses "takes NAME=VALUE, not 'uvm_perf_prefetch_enable'" -u uvm_perf_prefetch_enable good.umt
ok "a parameter that is no number" refuses "takes 0 to 1, not '-1'" -u uvm_perf_prefetch_enable=-1 good.umt
ok "parameters of a back-test" refuses "--uvm goes with neither" --backtest -u uvm_perf_prefetch_enable=0
ok "no threads" refuses "--jobs takes 1 to" -J 0 good.umt
ok "an unknown option" refuses "unknown option --no-such-option" --no-such-option good.umt
ok "hints of policies that give none" refuses "none of these policies gives hints" --open -p none,driver good.umt
ok "a page of what has none" refuses "makes no page" --open --html x.html good.umt
echo 'a letter' >letter.txt
ok "a page over what is none" refuses 'letter\.txt is not a page; it is not overwritten' --html letter.txt good.umt
ok "a page over its own input" refuses 'good\.umt is not a page' --html good.umt good.umt
ok "two back-tests" refuses "one file" --backtest a b

: >empty
yes 'this is not a trace' | head -500 >foreign
mkdir directory
mkfifo fifo
head -c 20 good.umt >cut-in-header.umt
head -c 100 /dev/urandom | { head -c 8 good.umt; cat; } >random.umt
for file in empty foreign directory fifo missing /dev/null cut-in-header.umt random.umt; do
    for mode in "" --open --backtest; do
        # shellcheck disable=SC2086 # no word or one
        ok "$file $mode" refuses "${file##*/}" $mode "$file"
    done
done
ok "a pipe as a machine" refuses "\./fifo: not a regular file" -m ./fifo good.umt
ok "a directory as a machine" refuses "\./directory: not a regular file" -m ./directory good.umt
ok "no machine" refuses "missing.json: No such file" -m missing.json good.umt
for log in "$UM_SRCDIR"/tests/data/import/*.log; do break; done
if [ -f "$log" ]; then
    ok "a profiler's log, with what to do" refuses "umrt import" "$log"
else
    skip "a profiler's log" "there is none in this tree"
fi
for kind in no-launches free-twice dead-argument zeroth-region overlap; do
    "$bin/impossible" $kind $kind.umt
    ok "what cannot have been: $kind" refuses "$kind\.umt: .*" $kind.umt
done
"$bin/impossible" unaligned unaligned.umt
ok "regions that begin inside a page, with --open" gives 0 timeout 300 "$umrt" replay --open unaligned.umt
"$bin/impossible" far-kernels far-kernels.umt
ok "kernels with the greatest ids, with --open" gives 0 timeout 300 "$umrt" replay --open far-kernels.umt
ok "no launches, with --open" refuses "no-launches\.umt: has no launches" --open no-launches.umt
size=$(stat -c %s good.umt)
head -c $((size - 1)) good.umt >cut.umt
ok "a damaged trace is used as far as it goes, and that is 2" gives 2 timeout 300 "$umrt" replay cut.umt
ok "with a line" says 'cut\.umt: offset [0-9]+: '
ok "and the results" prints '^  driver '
finish
