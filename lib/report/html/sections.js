// The sections of the page, out of its parts: each is there when its part is.

const report = part('report'), replayed = part('replay');

// What there is to win, in the words of the text report.
function toWin(f) {
  if (f.worth_by === 'replay' && f.predicted_error_ns) return `${time(f.worth_ns)} +- ${time(f.predicted_error_ns)}`;
  return f.worth_by === 'none' ? 'no time of its own' : `about ${time(f.worth_ns)}`;
}

// ---- summary ------------------------------------------------------------------------------------------

function summary() {
  const added = (rows, key) => rows.reduce((sum, row) => sum + (row[key] ?? 0), 0);
  const records = type => added(report.traces.map(trace => trace.records), type);
  const best = report.findings[0], totals = report.totals ?? {};
  const tiles = [
    ['run', time(Math.max(...report.traces.map(trace => trace.span_ns)))],
    ['findings', count(report.findings_found)],
    best && best.worth_it ? ['the first could win', toWin(best)] : null,
    ['to GPU', bytes(added(report.traces, 'to_device_bytes'))],
    ['to CPU', bytes(added(report.traces, 'to_host_bytes'))],
    ['GPU fault records', count(records('gpu_fault'))],
    ['CPU faults', count(records('cpu_fault'))],
    totals.gpu_fault_ns ? ['GPU waited for faults', time(totals.gpu_fault_ns)] : null,
    totals.cpu_wait_ns ? ['CPU waited for pages', time(totals.cpu_wait_ns)] : null,
    report.traces.some(trace => trace.loss.events) ? ['records lost', count(added(report.traces.map(t => t.loss), 'records'))] : null,
  ].filter(tile => tile);
  const about = trace => Object.fromEntries(Object.entries(trace)
    .filter(([key]) => !['records', 'first_ns', 'to_device_bytes', 'to_host_bytes', 'tracing'].includes(key))
    .map(([key, value]) => [key, key === 'loss' ? (value.events ? value : null) : value]));
  const one = report.traces.length === 1;

  document.title = 'umrt report: ' + (one ? report.traces[0].path : `${report.traces.length} traces`);
  document.querySelector('h1').textContent = document.title;
  section('summary', 'Summary',
    make('ul', {class: 'tiles'}, ...tiles.map(([label, value]) => make('li', {}, make('b', {}, value), label))),
    ...report.traces.filter(trace => trace.tracing !== 'on').map(trace => make('p', {},
      `${one ? '' : trace.path + ': '}recording of faults and migrations: ${trace.tracing}. ` +
      'Nothing is concluded from what is not seen here.')),
    one ? facts(about(report.traces[0])) : table('Traces', report.traces.map(about)),
    make('p', {}, 'Next:'), code('the next command', report.next),
    report.migrations.length ? table('Migrations', report.migrations) : null,
    report.copies.length ? table('Copies', report.copies) : null);
}

// ---- findings --------------------------------------------------------------------------------------------

// What every finding has, in the order of reading; whatever else it has comes after, by its kind of value.
const readFirst = ['where', 'seen', 'todo', 'code', 'undo'];
const findingsAtFirst = 20;
const inTitle = ['rank', 'title', 'worth_ns', 'worth_by', 'worth_it', 'kind', 'also', 'confidence'];

// What is neither a word nor a number: code, lists, groups of facts. null: it is one of those.
function rendered(key, value, f) {
  if (typeof value === 'string')
    return value.includes('\n') || /^(code|patch|undo|diff)/.test(key)
      ? [make('p', {class: 'soft'}, titled(key)), code(titled(key), value)] : null;
  if (typeof value !== 'object') return null;
  if (Array.isArray(value))
    return value.every(one => one && typeof one === 'object') ? [table(titled(key), value)] : null;
  const fold = (title, ...elements) => make('details', {}, make('summary', {}, title), ...elements);
  if (key === 'change' && value.steps) return value.steps.length ? [fold('as data', table('steps', value.steps))] : [];
  if (key !== 'code' && key !== 'undo') return [fold(titled(key), facts(value))];
  // Each text once, that of the program's own version or library first and the others folded.
  const once = new Map();
  for (const [dialect, text] of Object.entries(value))
    if (text) once.set(text, [...(once.get(text) ?? []), dialect]);
  const blocks = [...once].sort(([, a], [, b]) => b.includes(f.written_for) - a.includes(f.written_for))
    .map(([text, dialects]) => {
      const name = dialects.map(titled).join(', ');
      return [make('p', {class: 'soft'}, `${titled(key)}: ${name}`), code(`${key} for ${name}`, text)];
    });
  const first = f.written_for || key === 'undo' ? 1 : blocks.length;
  return [...blocks.slice(0, first).flat(),
    ...(blocks.length > first ? [fold('for other versions', ...blocks.slice(first).flat())] : [])];
}

function finding(f) {
  const rest = Object.keys(f).filter(key => !readFirst.includes(key) && !inTitle.includes(key));
  const body = [];
  let words = {}; // those in a row are one list
  for (const key of [...readFirst, ...rest]) {
    const value = f[key];
    if (value === null || value === undefined || value === '' ||
      (typeof value === 'object' && !Object.keys(value).length)) continue;
    const elements = rendered(key, value, f);
    if (!elements) {
      words[key] = value;
      continue;
    }
    body.push(facts(words), ...elements);
    words = {};
  }
  return make('article', {class: 'finding', 'aria-labelledby': `finding-${f.rank}`},
    make('h3', {id: `finding-${f.rank}`}, make('span', {}, `${f.rank}. ${f.title}`),
      make('span', {class: 'win'}, toWin(f) + (f.worth_by === 'none' ? '' : ` to win, by ${f.worth_by}`))),
    make('p', {class: 'soft'}, `${[f.kind, ...(f.also ?? [])].join(', ')}; confidence ${show('confidence', f.confidence)}`),
    ...body, facts(words));
}

// Made when it is opened.
function notWorthIt(folded) {
  const details = make('details', {toggle: () => {
    if (details.open && !details.querySelector('.finding')) details.append(...folded.map(finding));
  }}, make('summary', {}, `Not worth it (below the error bar, or 1 % of the time): ${count(folded.length)}`));
  return details;
}

function findings() {
  const shown = report.findings.filter(f => f.worth_it), rest = shown.slice(findingsAtFirst);
  const folded = report.findings.filter(f => !f.worth_it), left = report.findings_found - report.findings.length;
  const more = make('button', {type: 'button', click: () => {
    const others = rest.map(finding);
    more.replaceWith(...others);
    others[0].tabIndex = -1;
    others[0].focus();
  }}, `Show ${count(rest.length)} more findings`);
  section('findings', 'Findings',
    make('p', {class: 'soft'}, 'By time to win, replayed in the driver model or else estimated. The times may overlap.'),
    ...(shown.length ? shown.slice(0, findingsAtFirst).map(finding)
      : [make('p', {}, folded.length ? 'None that is worth it.' : 'None in what was recorded.')]),
    rest.length ? more : null,
    folded.length ? notWorthIt(folded) : null,
    left > 0 ? make('p', {}, `${count(left)} more: umrt report --top`) : null);
}

// ---- map and time line -------------------------------------------------------------------------------------

function maps() {
  const raw = part('map');
  if (!raw) return;
  const map = decode(raw), view = makeView(map);
  if (!map.regions.length && !map.lanes.columns) {
    section('map', 'Map', make('p', {}, 'There was no fault, no move and no kernel to draw.'));
    return;
  }
  const way = make('select', {change: () => { legend(); view.listeners.forEach(draw => draw()); }},
    make('option', {value: 'all'}, 'moves, else faults'), make('option', {value: 'moves'}, 'moves'),
    make('option', {value: 'faults'}, 'faults'));
  const where = make('select', {change: () => {
    const region = map.regions[where.value];
    view.set(view.t0, view.t1, region ? region.top : 0, region ? region.top + region.height : 1);
  }}, make('option', {value: ''}, 'all'),
  ...map.regions.map((region, i) => make('option', {value: i}, region.name)));
  const button = (text, label, act) => make('button', {type: 'button', 'aria-label': label, click: act}, text);
  const middle = () => [(view.t0 + view.t1) / 2, null];
  const key = make('span', {class: 'key soft'});
  const spot = (name, text) => {
    const square = make('i');
    square.style.background = `var(--${name})`;
    return [square, text];
  };
  function legend() {
    key.replaceChildren(...(way.value !== 'faults' ? [...spot('in', 'to GPU'), ...spot('out', 'to CPU'), ', between them both;'] : []),
      ...(way.value !== 'moves' ? spot('fault', 'faults') : []), ' (stronger is more)');
  }
  legend();
  const named = map.regions.length ? [
    make('label', {}, 'Show ', way), make('label', {}, 'Region ', where)] : [];
  section('map', 'Map and time line',
    make('p', {id: 'map-help', class: 'soft'}, 'Addresses by time, regions one below the other. Wheel: zoom in time, with Shift in both; ' +
      'drag: zoom to what is marked; double click or 0: all. With the keyboard: arrows move the cursor (with Shift further), + and - zoom.'),
    make('div', {class: 'tools'}, ...named,
      button('+', 'Zoom in', () => view.zoom(0.5, ...middle())), button('\u2212', 'Zoom out', () => view.zoom(2, ...middle())),
      button('All', 'Show all', () => { where.value = ''; view.all(); }), map.regions.length ? key : null),
    map.regions.length ? heatMap(map, view, () => way.value) : make('p', {}, 'No move and no fault in a known allocation.'),
    map.skipped ? make('p', {class: 'soft'}, 'There was more than the map has room for: the latest regions are not on it.') : null,
    timeLine(map, view),
    map.spans_left ? make('p', {class: 'soft'}, `${count(map.spans_left)} later named phases are not drawn.`) : null,
    folded('The map in words',
      () => map.regions.length ? table('What happened in each region', map.regions.map(region => regionWords(map, region))) : '',
      () => table('What happened when', timeWords(map))));
  window.umrtView = view; // for the page's test
}

// ---- what if -----------------------------------------------------------------------------------------------

function whatIf() {
  if (!replayed) return;
  if (replayed.absent) {
    section('what-if', 'What if', make('p', {}, `Not replayed: ${replayed.absent}`));
    return;
  }
  const one = group => {
    const title = `${group.machine}, ${bytes(group.gpu_bytes)} of GPU memory` +
      (group.streams ? `, at most ${group.streams} streams side by side` : '');
    return [make('h3', {}, title),
      make('p', {}, `No policy could need less than ${time(group.least_ns)} (the line in the bars), nor move less than ${bytes(group.least_bytes)}.`),
      make('p', {class: 'soft'}, group.error_runs
        ? `Of ${group.error_runs} runs measured on such a machine, half were within ${group.error_median_percent} % of the model, all within ${group.error_worst_percent} %.`
        : `Never compared with a real machine; ${group.estimates} figures of its description are estimates: trust the order, not the times.`),
      table(`Policies on ${title}`, group.results, {bar: {key: 'time_ns', mark: group.least_ns}})];
  };
  if (!report) {
    document.title = 'umrt replay';
    document.querySelector('h1').textContent = document.title;
  }
  section('what-if', 'What if',
    make('p', {}, 'What each policy would do, in a model of the driver.'),
    ...replayed.workloads.flatMap(w => [
      report && replayed.workloads.length === 1 ? null : make('h3', {}, w.path),
      make('p', {}, `${w.kind}: ${count(w.launches)} launches, ${bytes(w.managed_peak_bytes)} managed; ${w.means}.`),
      w.whole ? null : make('p', {}, 'The file is damaged or was not closed: used as far as it goes.'),
      ...w.tables.flatMap(one)]));
}

if (report) {
  summary();
  findings();
  maps();
  whatIf();
  const named = report.phases.some(phase => phase.kind === 'named');
  const captions = {regions: 'Regions, by label or by call site and size', kernels: 'Kernels',
    phases: named ? 'Phases, as the program names them' : 'Phases: turns of CPU and GPU'};
  const above = ['traces', 'migrations', 'copies', 'findings'];
  // These, and whatever other tables the report has.
  for (const key of [...Object.keys(captions), ...Object.keys(report).filter(key => !above.includes(key) && !captions[key])]) {
    const rows = report[key], left = (report[key + '_found'] ?? 0) - (rows?.length ?? 0);
    if (!Array.isArray(rows) || !rows.length || typeof rows[0] !== 'object') continue;
    const title = titled(key)[0].toUpperCase() + titled(key).slice(1);
    section(key.replaceAll('_', '-'), title, table(captions[key] ?? title, rows),
      left > 0 ? make('p', {}, `${count(left)} more: umrt report --top`) : null);
  }
} else {
  whatIf();
}
