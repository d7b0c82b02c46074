"""What must hold of the pages in this folder (report_page.sh makes them), in TAP.

UM_PICTURES=DIR also leaves pictures of them there, to be looked at."""
import os
import traceback

import browser

tests = 0


def ok(name, holds):
    """holds(): true, or what is wrong is shown."""
    global tests
    tests += 1
    try:
        got = holds()
        wrong = [] if got is True or got == [] else [f"got {got!r}"]
    except Exception:
        wrong = traceback.format_exc().splitlines()
    print(f"{'not ok' if wrong else 'ok'} {tests} - {name}", flush=True)
    for line in wrong:
        print("# " + line)


page = browser.Browser(browser.program())
run = page.run


def look(name):
    if os.environ.get("UM_PICTURES"):
        page.picture(os.path.join(os.environ["UM_PICTURES"], name + ".png"))


def settle():
    """Until what was asked for is drawn."""
    run("new Promise(drawn => requestAnimationFrame(() => requestAnimationFrame(drawn)))")


def click(selector):
    run(f"document.querySelector({selector!r}).click()")


def focus(selector):
    run(f"document.querySelector({selector!r}).focus()")


def column(table, title):
    """The texts of a column as the table now shows them."""
    return run(f"""(() => {{
        const table = document.querySelector({table!r});
        const at = [...table.tHead.rows[0].cells].findIndex(cell => cell.textContent === {title!r});
        return [...table.tBodies[0].rows].map(row => row.cells[at].textContent);
    }})()""")


def sort(table, title):
    run(f"""[...document.querySelectorAll({table!r} + ' th button')]
        .find(button => button.textContent === {title!r}).click()""")


def number(text):
    """Of a cell: '1,024', '12.5 MiB', '3.00 ms'."""
    units = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}
    value, _, unit = text.replace(",", "").partition(" ")
    return float(value) * units.get(unit, 1)


def view():
    return run("(({t0, t1, y0, y1}) => [t0, t1, y0, y1])(umrtView)")


def area(selector):
    """Its place in the window, scrolled into it: left, top, width, height."""
    return run(f"""(() => {{
        const element = document.querySelector({selector!r});
        element.scrollIntoView({{block: 'center'}});
        const box = element.getBoundingClientRect();
        return [box.left, box.top, box.width, box.height];
    }})()""")


def ink(selector):
    """How many pixels of a canvas, right of the names, are drawn on."""
    return run(f"""(() => {{
        const canvas = document.querySelector({selector!r}), left = Math.ceil(gutter() * devicePixelRatio);
        const data = canvas.getContext('2d').getImageData(left, 0, canvas.width - left, canvas.height).data;
        let drawn = 0;
        for (let i = 3; i < data.length; i += 4) drawn += data[i] > 0;
        return drawn;
    }})()""")


def unnamed():
    """What a screen reader could say nothing of."""
    tree = page.call("Accessibility.getFullAXTree")["nodes"]
    wanted = ("button", "textbox", "searchbox", "combobox", "checkbox", "image", "table", "link", "region", "img")
    return [node["role"]["value"] + str(node.get("backendDOMNodeId")) for node in tree
            if not node.get("ignored") and node["role"]["value"] in wanted and not node.get("name", {}).get("value")]


# ---- the page of a trace that has something of everything, and names that would be markup --------------

page.size(1280, 900)
milliseconds = page.open("busy.html")
print(f"# {os.path.getsize('busy.html')} bytes, opened in {milliseconds:.0f} ms")
ok("the console has nothing to say and nothing is fetched", page.complaints)
ok("names that look like markup are text", lambda: run(
    "document.images.length === 0 && document.querySelectorAll('main script').length === 0 && "
    "document.body.textContent.includes('onerror=alert(1)')"))
ok("all sections are there, each with a heading", lambda: run(
    "(wanted => [...document.querySelectorAll('section')].map(s => s.id).filter(id => wanted.includes(id)).join(' ') "
    "=== wanted.join(' '))('summary findings map what-if regions kernels phases'.split(' ')) && "
    "[...document.querySelectorAll('section')].every(s => s.querySelector('h2').textContent)"))
ok("the first findings are shown, the others when asked for", lambda: (
    before := run("document.querySelectorAll('.finding').length"),
    worth := run("report.findings.filter(f => f.worth_it).length"),
    run("document.querySelector('#findings > button')?.click()"),
    0 < before == min(worth, run("findingsAtFirst")) and run("document.querySelectorAll('.finding').length") == worth)[3])
ok("what is not worth it is folded, and there when unfolded", lambda: (
    run("document.querySelector('#findings > details').open = true"), settle(),
    run("document.querySelectorAll('#findings > details > .finding').length") ==
    run("report.findings.filter(f => !f.worth_it).length") > 0)[2])
ok("the time to win is the replay's with its error bar, or is said to be estimated", lambda: run(
    "report.findings.every((f, i) => (text => f.worth_by === 'replay' ? text.includes('by replay') && "
    "(!f.predicted_error_ns || text.includes('+-')) : f.worth_by === 'estimate' ? text.includes('by estimate') : "
    "text.includes('no time of its own'))(document.querySelectorAll('.finding .win')[i].textContent))"))
ok("then every finding is there, in order", lambda: run(
    "document.querySelectorAll('.finding').length === report.findings.length && report.findings.length > 2 && "
    "[...document.querySelectorAll('.finding h3')].every((h, i) => h.textContent.startsWith(i + 1 + '. '))"))
ok("a finding shows each of its texts", lambda: run(
    "report.findings.every((f, i) => ['title', 'where', 'seen', 'todo', 'win_basis'].every(key => "
    "document.querySelectorAll('.finding')[i].textContent.includes(f[key])))"))
ok("and each of its codes", lambda: run(
    "report.findings.every((f, i) => Object.values(f.code).every(code => !code || "
    "[...document.querySelectorAll('.finding')[i].querySelectorAll('pre')].some(pre => pre.textContent === code)))"))
ok("and how each is undone", lambda: run(
    "report.findings.every((f, i) => Object.values(f.undo).every(code => !code || "
    "[...document.querySelectorAll('.finding')[i].querySelectorAll('pre')].some(pre => pre.textContent === code)))"))
ok("a field that this page has never heard of is shown, as text", lambda: run(
    "finding({...report.findings[0], news: '<i>new</i>', undo: 'a\\nb', odds: [{x: 1}]})"
    ".textContent.includes('<i>new</i>')"))
ok("everything has a name to be read out", unnamed)
look("top")

ok("a click on a title sorts, the largest first", lambda: (
    sort("#regions", "GPU faults"),
    (got := [number(x) for x in column("#regions table", "GPU faults")]) == sorted(got, reverse=True)
    and len(set(got)) > 1)[1])
ok("and says so", lambda: run(
    "document.querySelector('#regions th[aria-sort]').textContent === 'GPU faults' && "
    "document.querySelector('#regions th[aria-sort]').getAttribute('aria-sort') === 'descending' && "
    "document.getElementById('said').textContent.includes('descending')"))
ok("a second click turns it round", lambda: (
    sort("#regions", "GPU faults"),
    (got := [number(x) for x in column("#regions table", "GPU faults")]) == sorted(got))[1])
ok("units do not mislead it", lambda: (
    sort("#regions", "to GPU"),
    (got := [number(x) for x in column("#regions table", "to GPU")]) == sorted(got, reverse=True))[1])
ok("names sort by name", lambda: (
    sort("#kernels", "name"), (got := column("#kernels table", "name")) == sorted(got, key=str.lower))[1])
ok("a sorted title keeps the focus", lambda: (
    focus("#kernels th:nth-child(2) button"), page.key("Enter"),
    run("document.activeElement.closest('th')?.cellIndex"))[2] == 1)

ok("a filter leaves the rows that have the word", lambda: (
    focus("#regions input[type=search]"), [page.key(c) for c in "HALO"],
    run("[...document.querySelectorAll('#regions tbody tr')].map(row => row.cells[0].textContent)"))[2] == ["halo"])
ok("and says how many of how many", lambda: run(
    "/^1 of \\d+ rows$/.test(document.querySelector('#regions .tools .soft').textContent)"))
ok("without it all are back", lambda: run("""(() => {
    const input = document.querySelector('#regions input[type=search]');
    input.value = '';
    input.dispatchEvent(new Event('input'));
    return document.querySelectorAll('#regions tbody tr').length === rowsAtFirst;
})()"""))
ok("and a button shows those beyond the first", lambda: (
    click("#regions .table > button"),
    run("document.querySelectorAll('#regions tbody tr').length === report.regions.length"))[1])
ok("all columns, when asked for", lambda: (
    before := run("document.querySelectorAll('#regions th').length"),
    click("#regions input[type=checkbox]"),
    run("document.querySelectorAll('#regions th').length") > before)[2])

page.call("Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"])
ok("Copy copies the code", lambda: (
    page.call("Page.bringToFront"), click(".finding .code button"), settle(),
    run("navigator.clipboard.readText()") == run("document.querySelector('.finding pre').textContent"))[3])

# ---- map and time line ---------------------------------------------------------------------------------

canvas = "#map .plot canvas"
line = "#map .plot ~ .plot canvas"
left, top, width, height = area(canvas)
ok("the map and the time line are drawn", lambda: ink(canvas) > 500 and ink(line) > 2000)
ok("under the pointer are region, part, time and what happened", lambda: (
    page.mouse("mouseMoved", left + width / 2, top + height / 2),
    text := run("document.querySelector('#map .tip').textContent"),
    all(word in text for word in (" in it, ", " to ", "ms")))[2])
whole = view()
ok("the wheel zooms in time, around the pointer", lambda: (
    page.mouse("mouseWheel", left + width / 2, top + height / 2, deltaX=0, deltaY=-100), settle(),
    now := view(), now[1] - now[0] < whole[1] - whole[0] and now[0] > 0 and now[1] < whole[1] and now[2:] == [0, 1])[3])
ok("and with Shift in both", lambda: (
    page.mouse("mouseWheel", left + width / 2, top + height / 2, deltaX=0, deltaY=-100, modifiers=8), settle(),
    now := view(), now[3] - now[2] < 1)[3])
before = ink(canvas)
ok("what is zoomed into is drawn anew", lambda: (click("[aria-label='Show all']"), settle(), ink(canvas) != before)[2])
ok("a drag zooms to what is marked", lambda: (
    page.mouse("mousePressed", left + width * 0.4, top + height * 0.2, button="left", clickCount=1),
    page.mouse("mouseMoved", left + width * 0.5, top + height * 0.5, button="left"),
    page.mouse("mouseReleased", left + width * 0.6, top + height * 0.6, button="left", clickCount=1), settle(),
    now := view(), 0 < now[0] < now[1] < whole[1] and abs(now[2] - 0.2) < 0.02 and abs(now[3] - 0.6) < 0.02)[5])
look("zoomed")
ok("times that differ are told apart", lambda: run(
    "moment(155930000, 10000) === '155.93 ms' && moment(0, 100) === '0 ns' && moment(20e6, 20e6) === '20 ms' && "
    "moment(1234567890, 1) === '1.234567890 s'"))
ok("0 shows all again", lambda: (focus(canvas), page.key("0"), view() == whole)[2])
ok("+ and - zoom by keyboard", lambda: (
    page.key("+"), page.key("+"), two := view(), page.key("-"), one := view(),
    whole[1] > one[1] - one[0] > two[1] - two[0])[5])
ok("arrows move the cursor and tell what is there", lambda: (
    page.key("ArrowRight"), run("document.querySelector('#map .tip').textContent").count("\n") >= 2)[1])
ok("at the edge the view moves along", lambda: (
    before := view(), [page.key("ArrowRight", 8) for _ in range(8)], after := view(),
    after[0] > before[0] and abs((after[1] - after[0]) - (before[1] - before[0])) < 1)[3])
ok("Escape takes the cursor away", lambda: (
    page.key("Escape"), run("document.querySelector('#map .tip').textContent") == "")[1])
ok("a region is chosen by name", lambda: (
    run("""(() => {
        const where = document.querySelectorAll('#map select')[1];
        where.value = [...where.options].findIndex(option => option.textContent === 'halo') - 1;
        where.dispatchEvent(new Event('change'));
    })()"""), now := view(), 0 < now[3] - now[2] < 0.1)[2])
ok("the map's tip names the kernel", lambda: (
    click("[aria-label='Show all']"),
    run("""(() => {
        const raw = decode(part('map')), region = raw.regions.find(r => r.name === 'grid');
        const got = sum(raw, region, 0, Infinity, 0, Infinity);
        return got.kernel !== null && raw.kernels.includes(got.kernel);
    })()"""))[1])
ok("cells, lanes and tables agree on what moved", lambda: run("""(() => {
    const map = decode(part('map'));
    const cells = map.regions.map(r => sum(map, r, 0, Infinity, 0, Infinity));
    const total = key => report.traces.reduce((all, trace) => all + trace[key], 0);
    const lane = key => map.lanes[key].reduce((a, b) => a + b, 0);
    return cells.reduce((all, c) => all + c.in, 0) === total('to_device_bytes') &&
        lane('to_device_bytes') === total('to_device_bytes') && lane('to_host_bytes') === total('to_host_bytes') &&
        lane('gpu_faults') === report.traces[0].records.gpu_fault;
})()"""))
ok("the map is there in words, too", lambda: (
    click("#map summary"), settle(), run(
        "document.querySelectorAll('#map details table').length === 2 && "
        "document.querySelector('#map details tbody').rows.length > 2"))[2])
ok("the time line tells what happens when", lambda: (
    box := area(line), at := run("(([, start, lasts]) => (start + lasts / 2) / umrtView.t1)(decode(part('map')).spans[1])"),
    page.mouse("mouseMoved", box[0] + run("gutter()") + (box[2] - run("gutter()")) * at, box[1] + box[3] / 2),
    text := run("document.querySelectorAll('#map .tip')[1].textContent"),
    all(word in text for word in ("in step", "GPU faults", "kernel ")) or text)[4])

# ---- for everybody ----------------------------------------------------------------------------------------

ok("every table has a caption", lambda: run("[...document.querySelectorAll('table')].every(t => t.caption?.textContent)"))
ok("no two elements share an id", lambda: run(
    "(ids => new Set(ids).size === ids.length)([...document.querySelectorAll('[id]')].map(e => e.id))"))
ok("there is one title, and no level of headings is left out", lambda: run("""(() => {
    const levels = [...document.querySelectorAll('h1,h2,h3')].map(h => +h.tagName[1]);
    return levels.filter(l => l === 1).length === 1 && levels.every((l, i) => !i || l <= levels[i - 1] + 1);
})()"""))


def tabbed():
    """From each line of the contents with Enter, then with Tab: what of the page it did not come to."""
    seen = set()
    for link in range(run("document.querySelectorAll('nav a').length")):
        run(f"document.querySelectorAll('nav a')[{link}].focus()")
        page.key("Enter")
        for _ in range(12):
            page.key("Tab")
            seen.add(run("(e => e.tagName + (e.closest('section')?.id ?? ''))(document.activeElement)"))
    wanted = {"BUTTONfindings", "PREfindings", "CANVASmap", "BUTTONmap", "SELECTmap", "SUMMARYmap",
              "INPUTregions", "BUTTONregions", "DIVregions", "BUTTONkernels"}
    return sorted(wanted - seen)


ok("Tab reaches all that can be used", tabbed)
ok("the first of it skips to the content", lambda: (
    focus(".skip"), page.key("Enter"), run("location.hash") == "#main")[2])

paper = "getComputedStyle(document.body).backgroundColor"
light = run(paper)
page.size(1280, 900, dark=True)
settle()
dark = run(paper)
ok("dark where the system is", lambda: dark != light and sum(map(int, dark[4:-1].split(","))) < 150)
look("dark")
ok("light by the switch", lambda: (
    run("theme.value = 'light', theme.dispatchEvent(new Event('change'))"), run(paper) == light)[1])
ok("dark by the switch", lambda: (
    page.size(1280, 900), run("theme.value = 'dark', theme.dispatchEvent(new Event('change'))"), run(paper) == dark)[2])


def contrast():
    """Pairs of text colour and what is behind it below 4.5 to 1."""
    return run("""(() => {
        const light = name => {
            const [r, g, b] = rgb(name).map(c => c / 255).map(c => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
            return 0.2126 * r + 0.7152 * g + 0.0722 * b;
        };
        const poor = [];
        for (const ink of ['ink', 'soft', 'accent']) for (const paper of ['paper', 'card']) {
            const [a, b] = [light(ink), light(paper)].sort((x, y) => y - x);
            if ((a + 0.05) / (b + 0.05) < 4.5) poor.push(ink + ' on ' + paper);
        }
        return poor;
    })()""")


ok("text stands out from what is behind it, when dark", contrast)
run("theme.value = '', theme.dispatchEvent(new Event('change'))")
ok("and when light", contrast)
page.size(360, 800)
settle()
ok("a narrow window does not scroll sideways", lambda: run("document.documentElement.scrollWidth <= innerWidth"))
ok("and still has its map", lambda: ink(canvas) > 200)
run("scrollTo(0, 0)")
look("narrow")
ok("after all of this the console is still empty", page.complaints)

# ---- other pages --------------------------------------------------------------------------------------------

page.size(1280, 900)
page.open("table.html")
ok("a recorded trace: nothing to complain of", page.complaints)
ok("what if: each policy once, with the least time marked", lambda: run(
    "document.querySelectorAll('#what-if tbody tr').length === replayed.workloads[0].tables[0].results.length && "
    "document.querySelectorAll('#what-if .bar b').length > 2"))
page.open("off.html")
ok("a trace without faults: nothing to complain of", page.complaints)
ok("says that none were recorded", lambda: run(
    "document.getElementById('summary').textContent.includes('recording of faults and migrations: unsupported')"))
ok("and why there is no replay", lambda: run("document.getElementById('what-if').textContent.includes('Not replayed: ')"))
page.open("replay.html")
ok("a page of umrt replay: nothing to complain of", page.complaints)
ok("has its tables", lambda: run("document.querySelectorAll('#what-if table').length") == 2)
ok("and everything in it has a name", unnamed)
page.close()
print(f"1..{tests}")
