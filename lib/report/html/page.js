// Elements, units, tables. What comes from a trace goes into the page as text, never as markup.

const main = document.getElementById('main');

function part(name) {
  const found = document.getElementById('part-' + name);
  return found ? JSON.parse(found.textContent) : null;
}

// make('p', {class: 'soft'}, 'text', element ...): functions become listeners; null children are left out.
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === 'function') element.addEventListener(name, value);
    else if (value !== null && value !== false) element.setAttribute(name, value === true ? '' : value);
  }
  element.append(...children.filter(child => child !== null && child !== undefined));
  return element;
}

// A section with its heading, and its line in the contents.
function section(id, title, ...children) {
  const made = make('section', {id, 'aria-label': title}, make('h2', {}, title), ...children);
  main.append(made);
  document.getElementById('contents').append(make('a', {href: '#' + id}, title));
  return made;
}

// For those who hear the page.
function say(text) {
  document.getElementById('said').textContent = text;
}

// ---- units: as umrt's text output has them -------------------------------------------------------

const digits = x => x.toFixed(x < 9.995 ? 2 : x < 99.95 ? 1 : 0);
const scaled = (value, step, units) => {
  let i = 0;
  for (; value >= step && i < units.length - 1; i++) value /= step;
  return digits(value) + ' ' + units[i];
};
const bytes = n => n < 1024 ? n + ' B' : scaled(n / 1024, 1024, ['KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB']);
const time = n => n < 1000 ? Math.round(n) + ' ns' : scaled(n / 1000, 1000, ['us', 'ms', 's']);
// A point of time, told from others that are `step` away.
function moment(t, step) {
  const [unit, ns] = [['s', 1e9], ['ms', 1e6], ['us', 1e3]].find(([, ns]) => t >= ns) ?? ['ns', 1];
  return (t / ns).toFixed(Math.min(9, Math.max(0, Math.ceil(Math.log10(ns / step) - 1e-9)))) + ' ' + unit;
}
const count = new Intl.NumberFormat('en-US').format;

const units = [
  [/speedup|_to_least$/, n => n.toFixed(2) + 'x'],
  [/(^|_)bytes(_|$)/, bytes],
  [/(^|_)ns$/, time],
  [/percent$|^confidence$/, n => n + ' %'],
  [/^rate$/, n => scaled(n / 1e6, 1000, ['MB/s', 'GB/s', 'TB/s'])],
];

function show(key, value) {
  if (value === null || value === undefined || value === '') return '-';
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  if (Array.isArray(value)) return value.map(one => show(key, one)).join(', ');
  if (typeof value === 'object')
    return Object.entries(value).map(([k, v]) => titled(k) + ' ' + show(k, v)).join(', ');
  if (typeof value !== 'number') return value;
  const unit = units.find(([pattern]) => pattern.test(key));
  return unit ? unit[1](value) : count(value);
}

const words = {gpu: 'GPU', gpus: 'GPUs', cpu: 'CPU', ns: '', '64k': 'of 64 KiB', '4k': 'of 4 KiB', uuid: 'UUID',
  cuda: 'CUDA', cuda12: 'CUDA 11.8 to 12', cuda13: 'CUDA 13',
  rmm: 'RMM', umpire: 'Umpire', kokkos: 'Kokkos', amrex: 'AMReX', cupy: 'CuPy', todo: 'do', pc: 'PC', device: 'GPU', host: 'CPU'};
const titles = {cuda12_2: 'CUDA 12.2 to 12.9', host: 'machine', exec_ns: 'time', addr: 'address', ns: 'time', time_error_ns: '+-', gpu_fault_ns: 'GPU stall',
  time_to_least: '/ least time', bytes_to_least: '/ least bytes', win_ns: 'to win', win_basis: 'estimate'};

// "to_device_bytes": "to GPU"
function titled(key) {
  const short = key.replace(/_(bytes|ns)$/, '') || key;
  return titles[key] ?? short.split('_').map(word => words[word] ?? word).join(' ').trim();
}

// ---- tables ----------------------------------------------------------------------------------------

const rowsAtFirst = 50;
const spare = new Set(['mangled', 'region', 'addr', 'traces', 'gpu_fault_groups', 'last_launch_that_faulted',
  'family', 'regions', 'trace', 'hints_refused', 'stall_ns', 'thrash_pages_4k', 'remote_maps', 'on_gpu',
  'call_site', 'frames', 'module', 'offset', 'why_no_line']);

// Rows are objects of like keys. bar: a column drawn as bars, with a mark at bar.mark.
function table(caption, rows, {bar = null} = {}) {
  const keys = [...new Set(rows.flatMap(row => Object.keys(row)))];
  const numeric = key => rows.every(row => row[key] === null || typeof row[key] === 'number');
  const blank = key => rows.every(row => !row[key] || row[key] === '-' || row[key].length === 0);
  const few = keys.filter(key => !blank(key) && !(spare.has(key) && (key !== 'region' || numeric(key))));
  let shown = few, order = null, up = false, all = false, wanted = [];

  const head = make('tr'), body = make('tbody'), told = make('span', {class: 'soft', role: 'status'});
  const more = make('button', {type: 'button', click: () => { all = true; fill(); }});
  const filter = make('input', {type: 'search', size: 18, input: () => {
    wanted = filter.value.toLowerCase().split(/\s+/).filter(word => word);
    fill();
  }});
  const longest = bar ? Math.max(bar.mark, ...rows.map(row => row[bar.key])) : 0;

  function sort(key) {
    up = order === key ? !up : !numeric(key);
    order = key;
    titleRow();
    fill();
    say(`${caption}: by ${titled(key)}, ${up ? 'ascending' : 'descending'}`);
  }
  function titleRow() {
    const focused = [...head.children].findIndex(cell => cell.contains(document.activeElement));
    head.replaceChildren(...shown.flatMap(key => [
      make('th', {scope: 'col', class: numeric(key) ? null : 'left',
        'aria-sort': order === key ? (up ? 'ascending' : 'descending') : null},
      make('button', {type: 'button', click: () => sort(key)}, titled(key))),
      bar && bar.key === key ? make('th', {scope: 'col'}, make('span', {class: 'unseen'}, 'bar')) : null,
    ].filter(cell => cell)));
    if (focused >= 0) head.children[focused]?.querySelector('button')?.focus();
  }
  function compare(a, b) {
    const x = a[order], y = b[order];
    if (x === null || y === null || x === undefined || y === undefined) // what is not known comes last
      return (x === null || x === undefined) - (y === null || y === undefined);
    const by = typeof x === 'number' && typeof y === 'number' ? x - y
      : show(order, x).localeCompare(show(order, y), 'en', {numeric: true});
    return up ? by : -by;
  }
  function drawn(row) {
    const percent = n => `${100 * n / longest}%`;
    const fillBar = make('i'), mark = make('b');
    fillBar.style.width = percent(row[bar.key]);
    mark.style.left = percent(bar.mark);
    return make('td', {}, make('div', {class: 'bar', 'aria-hidden': 'true'}, fillBar, mark));
  }
  function fill() {
    const fits = rows.filter(row => {
      const text = shown.map(key => show(key, row[key])).join(' ').toLowerCase();
      return wanted.every(word => text.includes(word));
    });
    if (order) fits.sort(compare);
    const some = all ? fits : fits.slice(0, rowsAtFirst);
    body.replaceChildren(...some.map(row => make('tr', {}, ...shown.flatMap(key => [
      make('td', {class: numeric(key) ? null : 'left'}, show(key, row[key])),
      bar && bar.key === key ? drawn(row) : null,
    ]))));
    const total = `${count(rows.length)} row${rows.length === 1 ? '' : 's'}`;
    told.textContent = fits.length === rows.length ? total : `${count(fits.length)} of ${total}`;
    more.textContent = `Show all ${count(fits.length)}`;
    more.hidden = some.length === fits.length;
  }

  titleRow();
  fill();
  const every = make('input', {type: 'checkbox', change: () => {
    shown = every.checked ? keys : few;
    titleRow();
    fill();
  }});
  return make('div', {class: 'table'},
    rows.length > 3 || few.length < keys.length ? make('div', {class: 'tools'},
      make('label', {}, 'Filter ', filter),
      few.length < keys.length ? make('label', {}, every, ' all columns') : null, told) : null,
    make('div', {class: 'wide', tabindex: 0, role: 'region', 'aria-label': caption},
      make('table', {}, make('caption', {}, caption), make('thead', {}, head), body)),
    more);
}

// ---- code to copy, facts -----------------------------------------------------------------------------

async function copy(text, from) {
  try {
    await navigator.clipboard.writeText(text);
  } catch { // where pages may not: as a user would
    getSelection().selectAllChildren(from);
    document.execCommand('copy');
  }
}

function code(label, text) {
  const pre = make('pre', {tabindex: 0, 'aria-label': label}, text);
  const button = make('button', {type: 'button', 'aria-label': 'Copy ' + label, click: async () => {
    await copy(text, pre);
    button.textContent = 'Copied';
    say(label + ' copied');
    setTimeout(() => { button.textContent = 'Copy'; }, 1500);
  }}, 'Copy');
  return make('div', {class: 'code'}, pre, button);
}

// Made when it is opened for the first time.
function folded(title, ...makers) {
  const box = make('details', {toggle: () => {
    if (box.childElementCount === 1) box.append(...makers.map(one => one()));
  }}, make('summary', {}, title));
  return box;
}

function facts(object) {
  const known = Object.entries(object).filter(([, value]) => value !== null && value !== undefined && value !== '');
  return known.length === 0 ? null : make('dl', {}, ...known.flatMap(([key, value]) => [make('dt', {}, titled(key)), make('dd', {}, show(key, value))]));
}

// ---- light and dark ------------------------------------------------------------------------------------

const redraw = []; // what is drawn with the theme's colours
const colors = {};
const theme = document.getElementById('theme');
const systemDark = matchMedia('(prefers-color-scheme: dark)');

function setTheme() {
  document.documentElement.dataset.theme = theme.value || (systemDark.matches ? 'dark' : 'light');
  const style = getComputedStyle(document.documentElement);
  for (const name of ['ink', 'soft', 'paper', 'card', 'line', 'accent', 'in', 'out', 'fault', 'busy'])
    colors[name] = style.getPropertyValue('--' + name).trim();
  redraw.forEach(draw => draw());
}
try { theme.value = localStorage.getItem('umrt-theme') ?? ''; } catch { /* not for this page */ }
theme.addEventListener('change', () => {
  try { localStorage.setItem('umrt-theme', theme.value); } catch { /* not for this page */ }
  setTheme();
});
systemDark.addEventListener('change', setTheme);
setTheme();
