// The heat map (address by time) and the time line below it: two canvases over one view.

// Base-128 numbers in base64, as html_map.c writes them.
function numbers(base64) {
  const text = atob(base64), out = [];
  let number = 0, scale = 1;
  for (let i = 0; i < text.length; i++) {
    const byte = text.charCodeAt(i);
    number += (byte & 127) * scale;
    scale *= 128;
    if (byte < 128) {
      out.push(number);
      number = 0;
      scale = 1;
    }
  }
  return out;
}

const fields = 5; // of a cell: column and row together, pages in, pages out, faults, kernel

function decode(map) {
  for (const region of map.regions) {
    const all = numbers(region.cells), n = all.length / fields;
    let at = 0;
    region.n = n;
    for (const name of ['row', 'column', 'in', 'out', 'faults', 'kernel']) region[name] = new Uint32Array(n);
    for (let i = 0; i < n; i++) {
      at += all[fields * i];
      region.row[i] = Math.floor(at / map.columns);
      region.column[i] = at % map.columns;
      region.in[i] = all[fields * i + 1];
      region.out[i] = all[fields * i + 2];
      region.faults[i] = all[fields * i + 3];
      region.kernel[i] = all[fields * i + 4];
    }
    region.address = parseInt(region.addr, 16) || 0;
  }
  map.regions.sort((a, b) => a.address - b.address);
  // By address, but a region's height grows with the root of its size: small ones stay visible.
  let below = 0;
  for (const region of map.regions) {
    region.top = below;
    region.height = Math.max(1, Math.sqrt(region.bytes / 65536));
    below += region.height;
  }
  for (const region of map.regions) {
    region.top /= below;
    region.height /= below;
  }
  for (const key of Object.keys(map.lanes)) {
    if (typeof map.lanes[key] === 'string') map.lanes[key] = numbers(map.lanes[key]);
  }
  const triples = list => Array.from({length: list.length / 3}, (_, i) => list.slice(3 * i, 3 * i + 3));
  map.spans = triples(numbers(map.spans));
  map.turns = triples(numbers(map.turns));
  const last = region => region.column.reduce((most, column) => Math.max(most, column + 1), 0) * map.column_ns;
  map.end = Math.max(1, map.lanes.columns * map.lanes.column_ns, ...map.regions.map(last),
    ...map.spans.map(([, start, lasts]) => start + lasts));
  return map;
}

const pageBytes = 4096;
const kernelName = (map, kernel) => kernel ? map.kernels[kernel - 1] : null;

// What the cells of a region add up to in [from, to) of time and of offset.
function sum(map, region, t0, t1, low, high) {
  const got = {in: 0, out: 0, faults: 0, kernels: new Map()};
  for (let i = 0; i < region.n; i++) {
    const t = region.column[i] * map.column_ns, offset = region.row[i] * region.row_bytes;
    if (t >= t1 || t + map.column_ns <= t0 || offset >= high || offset + region.row_bytes <= low) continue;
    got.in += region.in[i] * pageBytes;
    got.out += region.out[i] * pageBytes;
    got.faults += region.faults[i];
    if (region.kernel[i])
      got.kernels.set(region.kernel[i], (got.kernels.get(region.kernel[i]) ?? 0) + region.faults[i] + region.in[i] + 1);
  }
  const [kernel] = [...got.kernels].sort((a, b) => b[1] - a[1]).map(([k]) => k);
  got.kernel = kernelName(map, kernel);
  return got;
}

const rgb = name => [1, 3, 5].map(i => parseInt(colors[name].slice(i, i + 2), 16));

// ---- the view: what part of time and of the addresses is seen ---------------------------------------

function makeView(map) {
  const view = {t0: 0, t1: map.end, y0: 0, y1: 1, listeners: []};
  const limit = (low, high, most, least) => {
    const span = Math.min(most, Math.max(least, high - low));
    const from = Math.min(Math.max(0, low), most - span);
    return [from, from + span];
  };
  view.set = (t0, t1, y0 = view.y0, y1 = view.y1) => {
    [view.t0, view.t1] = limit(t0, t1, map.end, Math.min(map.end, 100));
    [view.y0, view.y1] = limit(y0, y1, 1, 1e-6);
    view.listeners.forEach(listener => listener());
  };
  // By a factor, around a point that stays where it is.
  view.zoom = (factor, t, y) => view.set(
    t - (t - view.t0) * factor, t + (view.t1 - t) * factor,
    y === null ? view.y0 : y - (y - view.y0) * factor, y === null ? view.y1 : y + (view.y1 - y) * factor);
  view.all = () => view.set(0, map.end, 0, 1);
  view.whole = () => view.t0 === 0 && view.t1 === map.end && view.y0 === 0 && view.y1 === 1;
  return view;
}

const gutter = () => innerWidth < 640 ? 76 : 150; // where names are, CSS pixels

// A canvas over the view: pointer, wheel and keys are the same for map and time line.
//   height(): CSS pixels; draw(context, width, height): without the gutter; tell(t, y): the tip's text
function plot(view, label, help, {height, draw, tell, tall}) {
  const canvas = make('canvas', {tabindex: 0, role: 'img', 'aria-label': label, 'aria-describedby': help});
  const tip = make('div', {class: 'tip', 'aria-live': 'polite'});
  const box = make('div', {class: 'plot'}, canvas, tip);
  const cursor = {t: 0.5, y: 0.5}; // of the view, 0 to 1
  let drag = null, picture = null, keyboard = false, asked = false;

  const width = () => canvas.clientWidth - gutter();
  const time_at = x => view.t0 + (view.t1 - view.t0) * x;
  const place_at = y => view.y0 + (view.y1 - view.y0) * y;

  function paint() { // the picture, and what moves over it
    const context = canvas.getContext('2d'), scale = devicePixelRatio || 1;
    if (!picture) return;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.putImageData(picture, 0, 0);
    context.setTransform(scale, 0, 0, scale, gutter() * scale, 0);
    context.strokeStyle = context.fillStyle = colors.ink;
    if (drag && drag.moved) {
      const top = tall ? Math.min(drag.y, cursor.y) : 0, bottom = tall ? Math.max(drag.y, cursor.y) : 1;
      const box = [Math.min(drag.x, cursor.t) * width(), top * height(),
        Math.abs(drag.x - cursor.t) * width(), (bottom - top) * height()];
      context.globalAlpha = 0.15;
      context.fillRect(...box);
      context.globalAlpha = 1;
      context.strokeRect(...box);
    } else if (keyboard) {
      context.globalAlpha = 0.6;
      context.fillRect(cursor.t * width(), 0, 1, height());
      if (tall) context.fillRect(0, cursor.y * height(), width(), 1);
      context.globalAlpha = 1;
    }
  }
  // However often it is asked for in between: once, with the next frame.
  function redrawSoon() {
    if (!asked) requestAnimationFrame(redrawNow);
    asked = true;
  }
  function redrawNow() {
    asked = false;
    const scale = devicePixelRatio || 1, context = canvas.getContext('2d', {willReadFrequently: true});
    if (canvas.clientWidth <= gutter()) return;
    canvas.style.height = height() + 'px';
    canvas.width = Math.round(canvas.clientWidth * scale);
    canvas.height = Math.round(height() * scale);
    draw(context, scale);
    picture = context.getImageData(0, 0, canvas.width, canvas.height);
    paint();
  }
  function show() {
    tip.textContent = tell(time_at(cursor.t), place_at(cursor.y), cursor.y);
    const left = gutter() + cursor.t * width();
    tip.style.left = left < canvas.clientWidth / 2 ? `${left + 14}px` : '';
    tip.style.right = left < canvas.clientWidth / 2 ? '' : `${canvas.clientWidth - left + 14}px`;
    tip.style.top = cursor.y < 0.5 || !tall ? `${cursor.y * height() + 12}px` : '';
    tip.style.bottom = cursor.y < 0.5 || !tall ? '' : `${(1 - cursor.y) * height() + 12}px`;
    box.style.overflow = tall ? 'hidden' : 'visible';
  }
  function hide() {
    tip.textContent = '';
    keyboard = false;
    paint();
  }
  function follow(event) {
    const area = canvas.getBoundingClientRect();
    cursor.t = Math.min(1, Math.max(0, (event.clientX - area.left - gutter()) / width()));
    cursor.y = Math.min(1, Math.max(0, (event.clientY - area.top) / height()));
    return event.clientX - area.left >= gutter();
  }
  canvas.addEventListener('pointermove', event => {
    const inside = follow(event);
    keyboard = false;
    if (drag && Math.hypot(event.clientX - drag.clientX, event.clientY - drag.clientY) > 4) drag.moved = true;
    if (inside || drag) show();
    else tip.textContent = '';
    paint();
  });
  canvas.addEventListener('pointerdown', event => {
    if (event.button || event.pointerType === 'touch' || !follow(event)) return;
    drag = {x: cursor.t, y: cursor.y, clientX: event.clientX, clientY: event.clientY, moved: false};
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener('pointerup', event => {
    const from = drag;
    if (!from) return;
    follow(event);
    drag = null;
    if (from.moved && from.x !== cursor.t)
      view.set(...[from.x, cursor.t].map(time_at).sort((a, b) => a - b),
        ...(tall && from.y !== cursor.y ? [from.y, cursor.y].map(place_at).sort((a, b) => a - b) : []));
  });
  canvas.addEventListener('pointerleave', () => { if (!drag) hide(); });
  canvas.addEventListener('dblclick', () => view.all());
  canvas.addEventListener('blur', hide);
  canvas.addEventListener('wheel', event => {
    if (event.deltaY > 0 && view.whole()) return; // the page scrolls on
    event.preventDefault();
    follow(event);
    view.zoom(event.deltaY > 0 ? 1.25 : 0.8, time_at(cursor.t), tall && event.shiftKey ? place_at(cursor.y) : null);
    show();
  }, {passive: false});

  // One step; at the edge the view moves along.
  function step(dt, dy) {
    const t = cursor.t + dt, y = cursor.y + dy;
    cursor.t = Math.min(1, Math.max(0, t));
    cursor.y = Math.min(1, Math.max(0, y));
    if (t !== cursor.t || y !== cursor.y) {
      const along = (view.t1 - view.t0) * (t - cursor.t), down = (view.y1 - view.y0) * (y - cursor.y);
      view.set(view.t0 + along, view.t1 + along, view.y0 + down, view.y1 + down);
    }
  }
  const keys = {
    ArrowLeft: far => step(far ? -0.1 : -0.01, 0),
    ArrowRight: far => step(far ? 0.1 : 0.01, 0),
    ArrowUp: far => step(0, far ? -0.1 : -0.02),
    ArrowDown: far => step(0, far ? 0.1 : 0.02),
    '+': () => view.zoom(0.5, time_at(cursor.t), tall ? place_at(cursor.y) : null),
    '=': () => keys['+'](),
    '-': () => view.zoom(2, time_at(cursor.t), tall ? place_at(cursor.y) : null),
    0: () => view.all(),
  };
  canvas.addEventListener('keydown', event => {
    if (event.key === 'Escape') hide();
    if (!keys[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    keyboard = true;
    keys[event.key](event.shiftKey);
    show();
    paint();
  });
  view.listeners.push(redrawSoon);
  redraw.push(redrawSoon);
  new ResizeObserver(redrawSoon).observe(box);
  return box;
}

// A name that is cut where the gutter ends.
function cut(context, text, room) {
  if (context.measureText(text).width <= room) return text;
  let n = text.length;
  while (n > 1 && context.measureText(text.slice(0, n) + '\u2026').width > room) n--;
  return text.slice(0, n) + '\u2026';
}

// ---- the map ---------------------------------------------------------------------------------------------

const least = 2; // pixels of what is drawn

function drawCells(map, view, way, width, height) {
  const [into, from, faulted] = [0, 0, 0].map(() => new Float32Array(width * height));
  const moves = way !== 'faults', faults = way !== 'moves';
  const across = width / (view.t1 - view.t0), down = height / (view.y1 - view.y0);
  let most = 0;
  for (const region of map.regions) {
    const top = (region.top - view.y0) * down, tall = region.height * down, rowTall = tall * region.row_bytes / region.bytes;
    const gap = tall > 6 ? 1 : 0; // between regions
    if (top > height || top + tall < 0) continue;
    for (let i = 0; i < region.n; i++) {
      const a = moves ? region.in[i] : 0, b = moves ? region.out[i] : 0, c = faults ? region.faults[i] : 0;
      if (!a && !b && !c) continue;
      const left = (region.column[i] * map.column_ns - view.t0) * across, right = left + map.column_ns * across;
      if (right < 0 || left >= width) continue;
      const up = top + region.row[i] * rowTall, low = Math.min(up + rowTall, top + tall - gap);
      const x0 = Math.max(0, Math.floor(left)), x1 = Math.min(width, Math.max(x0 + least, Math.floor(right)));
      const y0 = Math.max(0, Math.floor(up)), y1 = Math.min(height, Math.max(y0 + least, Math.floor(low)));
      for (let y = y0; y < y1; y++) {
        for (let x = x0, at = y * width + x0; x < x1; x++, at++) {
          into[at] += a;
          from[at] += b;
          faulted[at] += c;
          most = Math.max(most, into[at] + from[at] || faulted[at]);
        }
      }
    }
  }
  const image = new ImageData(width, height), out = image.data;
  const [one, other, third] = ['in', 'out', 'fault'].map(rgb), strength = 145 / Math.log1p(most);
  for (let i = 0, at = 0; i < into.length; i++, at += 4) {
    const moved = into[i] + from[i], all = moved || faulted[i];
    if (!all) continue;
    const base = moved ? one : third, share = moved ? into[i] / moved : 1;
    out[at] = base[0] * share + other[0] * (1 - share);
    out[at + 1] = base[1] * share + other[1] * (1 - share);
    out[at + 2] = base[2] * share + other[2] * (1 - share);
    out[at + 3] = 110 + strength * Math.log1p(all);
  }
  return image;
}

function heatMap(map, view, way) {
  const height = () => Math.max(200, Math.min(460, 60 + map.regions.length * 100));
  const place = y => map.regions.find(region => y < region.top + region.height) ?? map.regions.at(-1);
  function draw(context, scale) {
    const left = gutter(), wide = context.canvas.width - Math.round(left * scale), tall = context.canvas.height;
    context.putImageData(drawCells(map, view, way(), wide, tall), Math.round(left * scale), 0);
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.font = '12px system-ui, sans-serif';
    context.textBaseline = 'middle';
    let free = 0;
    for (const region of map.regions) {
      const y0 = (region.top - view.y0) / (view.y1 - view.y0) * height();
      const y1 = y0 + region.height / (view.y1 - view.y0) * height();
      if (y1 < 0 || y0 > height()) continue;
      context.fillStyle = colors.line;
      if (y1 - y0 > 6) context.fillRect(0, y1 - 1, context.canvas.width, 1);
      const middle = (Math.max(0, y0) + Math.min(height(), y1)) / 2;
      if (middle - 7 < free) continue; // no room for another name
      context.fillStyle = colors.ink;
      context.fillText(cut(context, region.name, left - 12), 6, middle);
      free = middle + 7;
    }
  }
  function tell(t, y) {
    const region = place(y), pixel = (view.t1 - view.t0) / 800;
    const offset = Math.min(1, Math.max(0, (y - region.top) / region.height)) * region.bytes;
    const thin = (view.y1 - view.y0) / 300 / region.height * region.bytes;
    const low = Math.floor(Math.max(0, offset - thin / 2) / region.row_bytes) * region.row_bytes;
    const high = Math.min(region.bytes, Math.max(low + region.row_bytes, offset + thin / 2));
    const t0 = Math.floor((t - pixel) / map.column_ns) * map.column_ns;
    const t1 = Math.max(t0 + map.column_ns, t + pixel);
    const got = sum(map, region, t0, t1, low, high);
    return `${region.name}\n${bytes(low)} to ${bytes(high)} in it, ${moment(Math.max(0, t0), t1 - t0)} to ${moment(t1, t1 - t0)}\n` +
      (got.in || got.out || got.faults
        ? `to GPU ${bytes(got.in)}, to CPU ${bytes(got.out)}, ${count(got.faults)} faults` : 'nothing happened') +
      (got.kernel ? `\nkernel ${got.kernel}` : '');
  }
  return plot(view, `Heat map of ${map.regions.length} regions over ${time(map.end)}; the same in words is in the table below.`,
    'map-help', {height, draw, tell, tall: true});
}

// ---- the time line -----------------------------------------------------------------------------------------

const laneHeight = 30, axisHeight = 20;

function lanesOf(map) {
  const all = [
    ['kernels', 'kernel_ns', 'busy'], ['launches', 'launches', 'busy'],
    ['GPU faults', 'gpu_faults', 'fault'], ['CPU faults', 'cpu_faults', 'fault'],
    ['to GPU', 'to_device_bytes', 'in'], ['to CPU', 'to_host_bytes', 'out'],
    ['evicted', 'evicted_bytes', 'out'], ['hints', 'hints', 'busy'],
  ];
  return all.filter(([, key]) => map.lanes[key].some(n => n));
}

// Sum of a lane in [t0, t1), a column's part by its share.
function amount(map, key, t0, t1) {
  const wide = map.lanes.column_ns, lane = map.lanes[key];
  let all = 0;
  for (let c = Math.max(0, Math.floor(t0 / wide)); c < lane.length && c * wide < t1; c++)
    all += lane[c] * (Math.min(t1, (c + 1) * wide) - Math.max(t0, c * wide)) / wide;
  return all;
}

function kernelAt(map, t) {
  return kernelName(map, map.lanes.kernel[Math.floor(t / map.lanes.column_ns)]);
}

function phasesAt(map, t) {
  const within = ([, start, lasts]) => t >= start && t < start + lasts;
  const named = map.spans.filter(within).map(([name]) => map.names[name]);
  return named.length ? named : map.turns.filter(within).map(([kind]) => ['CPU', 'GPU'][kind]);
}

function timeLine(map, view) {
  const lanes = lanesOf(map), phases = map.spans.length ? map.spans : map.turns;
  const height = () => axisHeight + laneHeight * (lanes.length + (phases.length ? 1 : 0));

  function drawPhases(context, left, wide) {
    phases.forEach(([what, start, lasts], i) => {
      const x0 = left + (start - view.t0) / (view.t1 - view.t0) * wide;
      const x1 = Math.max(x0 + 1, x0 + lasts / (view.t1 - view.t0) * wide);
      if (x1 < left || x0 > left + wide) return;
      const from = Math.max(left, x0), to = Math.min(left + wide, x1);
      const name = map.spans.length ? map.names[what] : ['CPU', 'GPU'][what];
      context.fillStyle = colors[map.spans.length ? ['in', 'busy', 'out', 'fault'][what % 4] : ['out', 'busy'][what]];
      context.globalAlpha = map.spans.length && i % 2 ? 0.45 : 0.6;
      context.fillRect(from, axisHeight + 4, to - from, laneHeight - 8);
      context.globalAlpha = 1;
      if (to - from > 40) {
        context.fillStyle = colors.ink;
        context.fillText(cut(context, name, to - from - 8), from + 4, axisHeight + laneHeight / 2);
      }
    });
  }
  function drawLane(context, key, paint, top, left, wide) {
    const values = Array.from({length: wide}, (_, x) => amount(map, key,
      view.t0 + (view.t1 - view.t0) * x / wide, view.t0 + (view.t1 - view.t0) * (x + 1) / wide));
    const most = values.reduce((a, b) => Math.max(a, b), 0);
    context.fillStyle = colors[paint];
    values.forEach((value, x) => {
      const tall = most ? Math.sqrt(value / most) * (laneHeight - 6) : 0;
      if (value) context.fillRect(left + x, top + laneHeight - 2 - Math.max(1, tall), 1, Math.max(1, tall));
    });
  }
  function drawAxis(context, left, wide) {
    const rough = (view.t1 - view.t0) / Math.max(2, wide / 110), ten = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map(k => k * ten).find(s => s >= rough);
    for (let t = Math.ceil(view.t0 / step) * step; t < view.t1; t += step) {
      const x = left + (t - view.t0) / (view.t1 - view.t0) * wide;
      context.fillStyle = colors.line;
      context.fillRect(x, 0, 1, height());
      context.fillStyle = colors.soft;
      if (left + wide - x > 60) context.fillText(moment(t, step), x + 4, axisHeight / 2);
    }
  }
  function draw(context, scale) {
    const left = gutter(), wide = Math.floor(context.canvas.width / scale - left);
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.font = '12px system-ui, sans-serif';
    context.textBaseline = 'middle';
    drawAxis(context, left, wide);
    const names = [...(phases.length ? ['phases'] : []), ...lanes.map(([name]) => name)];
    names.forEach((name, i) => {
      context.fillStyle = colors.line;
      context.fillRect(0, axisHeight + laneHeight * i, left + wide, 1);
      context.fillStyle = colors.ink;
      context.fillText(cut(context, name, left - 12), 6, axisHeight + laneHeight * (i + 0.5));
    });
    if (phases.length) drawPhases(context, left, wide);
    lanes.forEach(([, key, paint], i) =>
      drawLane(context, key, paint, axisHeight + laneHeight * (i + (phases.length ? 1 : 0)), left, wide));
  }
  function tell(t) {
    const pixel = Math.max((view.t1 - view.t0) / 800, map.lanes.column_ns), t0 = Math.floor(t / pixel) * pixel;
    const kernel = kernelAt(map, t), now = phasesAt(map, t);
    return [`${moment(t0, pixel)} to ${moment(t0 + pixel, pixel)}`,
      ...lanes.map(([name, key]) => [name, key, amount(map, key, t0, t0 + pixel)])
        .filter(([, , n]) => n >= 0.5)
        .map(([name, key, n]) => `${name} ${show(key, Math.round(n))}`),
      ...(kernel ? [`kernel ${kernel}`] : []), ...(now.length ? [`in ${now.join(', ')}`] : [])].join('\n');
  }
  return plot(view, `Time line over ${time(map.end)}: ${lanes.map(([name]) => name).join(', ')}; in words in the table below.`,
    'map-help', {height, draw, tell, tall: false});
}

// ---- the same in words -----------------------------------------------------------------------------------------

function regionWords(map, region) {
  const all = sum(map, region, 0, Infinity, 0, Infinity), rows = new Map(), columns = new Map();
  const add = (to, key, n) => to.set(key, (to.get(key) ?? 0) + n);
  for (let i = 0; i < region.n; i++) {
    const weight = region.in[i] + region.out[i] + region.faults[i];
    add(rows, region.row[i], weight);
    add(columns, region.column[i], weight);
  }
  const busiest = list => [...list].reduce((a, b) => b[1] > a[1] ? b : a)[0];
  const row = busiest(rows) * region.row_bytes, column = busiest(columns) * map.column_ns;
  return {region_name: region.name, bytes: region.bytes, to_device_bytes: all.in, to_host_bytes: all.out,
    faults: all.faults, busiest_part: `${bytes(row)} to ${bytes(Math.min(region.bytes, row + region.row_bytes))}`,
    busiest_time: `${time(column)} to ${time(column + map.column_ns)}`, kernel: all.kernel};
}

function timeWords(map, parts = 16) {
  return Array.from({length: parts}, (_, i) => {
    const t0 = map.end * i / parts, t1 = map.end * (i + 1) / parts;
    return {from_ns: Math.round(t0), ...Object.fromEntries(lanesOf(map)
      .map(([, key]) => [key === 'kernel_ns' ? 'kernels_ns' : key, Math.round(amount(map, key, t0, t1))]))};
  });
}
