// The charts of a record (vmm/cli/watch/recording_json.c), in the page's elements: for the page of
// a report, and for `vmp web`, which shows a longer record each second.  charts.show(record) draws.
// A chart is drawn when it comes near the window, so that a page opens fast.  Samples and moves
// have no elements of their own in the page: all bars of a row are one path, and so are all moves.
// Colours are those of Okabe and Ito, and the scale is cividis; those of hosts are by a search:
// people who are blind to some colours can tell them apart (tests/machine/report-look).
'use strict';
const charts = (() => {
const $ = id => document.getElementById(id);
const escaped = text => String(text).replace(/[&<>"']/g, c => `&#${c.charCodeAt(0)};`);
// What is shown, and what the charts need to know about it; begin and total: times in ms.
let record, ends, spans, n, begin, total;
const hostColours = ['#62b17b', '#ebd453', '#804f60', '#b0b6ff', '#1607a0', '#335514', '#999933',
  '#d524a4'];
const inks = ['#000', '#000', '#fff', '#000', '#fff', '#fff', '#000', '#000'];
const heatColours = [[0, 34, 78], [53, 69, 108], [102, 105, 112], [148, 142, 119],
  [200, 184, 102], [254, 232, 56]];

// ---- numbers for people ----
const duration = ms => ms < 10000 ? `${(ms / 1000).toFixed(2)} s` : ms < 120000 ?
  `${(ms / 1000).toFixed(1)} s` : `${Math.floor(ms / 60000)} min ${Math.round(ms / 1000) % 60} s`;
const short = value => {
  const unit = [[1e15, 'P'], [1e12, 'T'], [1e9, 'G'], [1e6, 'M'], [1e3, 'k']]
    .find(([least]) => value >= least);
  return unit ? `${(value / unit[0]).toFixed(unit[1] === 'k' && value >= 1e4 ? 0 : 1)} ${unit[1]}` :
    `${Math.round(value)}`;
};
const bytes = value => {
  const [least, name] = [[2 ** 50, 'PiB'], [2 ** 40, 'TiB'], [2 ** 30, 'GiB'], [2 ** 20, 'MiB']]
    .find(([least]) => value >= least) || [1024, 'KiB'];
  return `${(value / least).toFixed(name === 'KiB' && value >= 10240 ? 0 : 1)} ${name}`;
};
// The time of sample i.
const when = i => record.live ? `${((total - ends[i]) / 1000).toFixed(0)} s ago` :
  `At ${duration(ends[i])}`;
const micros = us => us >= 1e6 ? `${+(us / 1e6).toPrecision(3)} s` : us >= 1e3 ?
  `${+(us / 1e3).toPrecision(3)} ms` : `${+us.toPrecision(3)} µs`;
const hostName = number => {
  const host = record.hosts.find(h => h.host === number);
  return host && host.name ? `host ${number} (${host.name})` : `host ${number}`;
};
const largest = values => values.reduce((most, v) => v > most ? v : most, 0);

// ---- facts ----
function showFacts() {
  const fetched = record.hosts.reduce((sum, h) => sum +
    h.fetches.reduce((s, v, i) => s + (v || 0) * spans[i] / 1000, 0), 0);
  const moves = record.moves.length + record.moves_lost;
  const facts = record.facts || [['time', duration(total - begin)], ['processors', record.cpus],
    ['hosts', record.hosts.length], ['memory', `${record.memory_mib} MiB`],
    ['moves', moves], ['pages fetched', short(fetched)]];
  document.title = `${record.name}: a machine of vmp`;
  $('title').textContent = record.name;
  if (!record.live)
    $('what').innerHTML = (record.command ? `<code>${escaped(record.command)}</code>, ` : '') +
    `${escaped(new Date(record.written * 1000).toLocaleString())}`;
  $('facts').innerHTML = facts.map(([name, value]) =>
    `<div><dt>${name}</dt><dd>${escaped(value)}</dd></div>`).join('');
}

// ---- the cursor, by pointer and by keys ----
function addCursor(id, count, place, read) {
  const chart = $(id), line = chart.nextElementSibling;
  let at = -1;
  const show = i => {
    paint(id);
    at = Math.max(0, Math.min(count() - 1, i));
    const mark = chart.querySelector('.cursor');
    if (!mark || !count())
      return;
    const [x, width] = place(at, chart.clientWidth);
    mark.style.display = 'block';
    mark.style.left = `${x}px`;
    mark.style.width = `${Math.max(2, width)}px`;
    line.textContent = read(at, chart);
  };
  chart.addEventListener('pointermove', event => {
    const x = event.clientX - chart.getBoundingClientRect().left;
    let i = 0;
    while (i < count() - 1 && place(i + 1, chart.clientWidth)[0] <= x)
      i++;
    chart.pointerY = event.clientY - chart.getBoundingClientRect().top;
    show(i);
  });
  chart.addEventListener('keydown', event => {
    const steps = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: count() - 1 };
    if (!(event.key in steps))
      return;
    event.preventDefault();
    chart.pointerY = null;
    show(steps[event.key]);
  });
  chart.addEventListener('focus', () => { if (at < 0) show(0); });
  chart.addEventListener('pointerleave', () => {
    if (document.activeElement !== chart)
      hide();
  });
  const hide = () => {
    const mark = chart.querySelector('.cursor');
    at = -1;
    if (mark)
      mark.style.display = 'none';
  };
  again.set(id, () => { if (at >= 0) show(at); });
}
// What each chart does after it was drawn anew.
const again = new Map();
const cursor = '<div class="cursor" style="display:none;position:absolute;top:0;bottom:22px;' +
  'background:var(--text);opacity:0.35;pointer-events:none"></div>';

// ---- charts over time ----
const labelWidth = width => width < 500 ? 58 : 110;
const xOf = (ms, width) => labelWidth(width) +
  Math.max(0, ms - begin) / (total - begin || 1) * (width - labelWidth(width) - 8);
const placeOf = (i, width) => {
  const from = xOf(ends[i] - spans[i], width);
  return [from, xOf(ends[i], width) - from];
};
// The axis has the time since the record's begin; of a record that goes on, the time before now.
function timeAxis(width, y) {
  const most = width < 500 ? 3 : 8, steps = [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300,
    600, 1200, 1800, 3600, 7200, 18000, 36000, 86400, 604800];
  const all = total - begin;
  const step = (steps.find(s => all / 1000 / s <= most) || all / 2000) * 1000;
  let out = '';
  for (let i = 0; i * step <= all; i++) {
    const x = xOf(record.live ? total - i * step : begin + i * step, width);
    const last = (i + 1) * step > all, atEdge = record.live ? 'end' : 'start';
    const text = step < 1000 ? (i * step / 1000).toFixed(1) : i * step / 1000;
    if (record.live && last && i && x - labelWidth(width) < 20)
      break;
    out += `<line x1="${x}" x2="${x}" y1="0" y2="${y}" stroke="var(--line)"/>` +
      `<text class="weak" x="${x}" y="${y + 16}" text-anchor="${i ? last && !record.live ? 'end' :
      'middle' : atEdge}">${record.live ? i ? `\u2212${text} s` : 'now' : `${text} s`}</text>`;
  }
  return out;
}
function area(base, height, values, below, most, width) {
  const y = v => (base - Math.min(1, v / (most || 1)) * height).toFixed(1);
  const parts = [];
  for (let i = 0; i < n; i++) {
    if (!values[i])
      continue;
    const [x, w] = placeOf(i, width), low = y(below ? below[i] : 0);
    parts.push('M', x.toFixed(1), ' ', low, 'V', y((below ? below[i] : 0) + values[i]), 'h',
      (w + 0.3).toFixed(1), 'V', low, 'z');
  }
  return parts.join('');
}
// The first characters of a text; the last of them says that there are more.
const first = (text, most) => text.length > most ? `${text.slice(0, most - 1)}…` : text;
function label(text, y, width) {
  return `<text x="0" y="${y}">${escaped(width < 500 ? first(text.replace(/^host /, 'h '), 8) :
    first(text, 15))}</text>`;
}
const kinds = [['native', 'the guest’s own code', 'var(--native)'],
  ['shared_memory', 'waits for pages', 'var(--shared)'],
  ['emulation', 'emulation', 'var(--emulation)']];
// The hosts of a CPU over time.  Stays that are wide enough for a text are rectangles; all others
// on one host are one path.
function strip(cpu, y, width) {
  const narrow = hostColours.map(() => []);
  let out = '', from = 0;
  const flush = to => {
    const host = cpu.host[from];
    if (host === null || to < from)
      return;
    const x = placeOf(from, width)[0], end = placeOf(to, width);
    const w = end[0] + end[1] - x, colour = host % hostColours.length;
    if (w > 20)
      out += `<rect x="${x}" y="${y}" width="${w}" height="13" fill="${hostColours[colour]}"/>` +
        `<text x="${x + 4}" y="${y + 11}" style="fill:${inks[colour]}">${
          w > 70 ? `host ${host}` : host}</text>`;
    else
      narrow[colour].push(`M${x.toFixed(1)} ${y}h${w.toFixed(1)}v13h${(-w).toFixed(1)}z`);
  };
  for (let i = 1; i < n; i++)
    if (cpu.host[i] !== cpu.host[from]) {
      flush(i - 1);
      from = i;
    }
  flush(n - 1);
  return narrow.map((parts, colour) => parts.length ? `<path fill="${hostColours[colour]}" d="${
    parts.join('')}"/>` : '').join('') + out;
}
const cpusPitch = () => record.processors.length > 8 ? 41 : 59;
function describeCpus() {
  const { length } = record.processors;
  $('cpus-legend').innerHTML = kinds.map(([, name, colour]) =>
    `<span><i style="background:${colour}"></i>${name}</span>`).join('') +
    '<span><i></i>idle</span>';
  return [cpusPitch() * length + 22,
    `${length} processors over ${duration(total - begin)}, ${record.moves.length} moves`];
}
function drawCpus(width) {
  const pitch = cpusPitch(), tall = record.processors.length > 8 ? 20 : 34;
  const rows = new Map(record.processors.map((cpu, row) => [cpu.cpu, row])), below = [];
  let out = timeAxis(width, pitch * record.processors.length);
  record.processors.forEach((cpu, row) => {
    const base = row * pitch + tall + 2;
    below.length = 0;
    for (let i = 0; i < n; i++)
      below.push(0);
    for (const [kind, , colour] of kinds) {
      out += `<path fill="${colour}" d="${
        area(base, tall, cpu[kind], below, 1000, width)}"/>`;
      for (let i = 0; i < n; i++)
        below[i] += cpu[kind][i] || 0;
    }
    out += label(`CPU ${cpu.cpu}`, base - tall / 2 + 6, width) + strip(cpu, base + 2, width);
  });
  // Moves that would be drawn at one place are drawn once.
  const triangles = new Set();
  for (const [ms, cpu] of record.moves) {
    const x = xOf(Math.min(ms, total), width).toFixed(0);
    if (rows.has(cpu))
      triangles.add(`M${x} ${rows.get(cpu) * pitch + tall + 6}l-6 -10h12z`);
  }
  if (triangles.size)
    out += `<path d="${[...triangles].join('')}" fill="var(--text)" stroke="var(--page)"/>`;
  return out;
}
function readCpus(i) {
  const cpus = record.processors.slice(0, 8).map(cpu => cpu.host[i] === null ? '' :
    `CPU ${cpu.cpu} on ${hostName(cpu.host[i])}: ${(cpu.native[i] / 10).toFixed(0)} % own code, ` +
    `${(cpu.shared_memory[i] / 10).toFixed(0)} % waiting, ` +
    `${(cpu.emulation[i] / 10).toFixed(0)} % emulation`);
  const moves = record.moves.filter(([ms]) => ms > ends[i] - spans[i] && ms <= ends[i])
    .map(([, cpu, from, to, why]) => `; CPU ${cpu} moved from ${hostName(from)} to ${
      hostName(to)}${why ? `, ${why}` : ''}`);
  return `${when(i)}: ${cpus.filter(text => text).join('; ')}` +
    (record.processors.length > 8 ? '; ...' : '') + moves.join('');
}
const hostsTall = () => record.hosts.length > 8 ? 18 : 36;
const mostOf = field => largest(record.hosts.map(h => largest(h[field])));
function describeHosts(id, field, text) {
  const most = text(mostOf(field));
  $(id).previousElementSibling.textContent = `In a second; a row’s height is ${most}.`;
  return [(hostsTall() + 8) * record.hosts.length + 22, `${record.hosts.length} hosts over ${
    duration(total - begin)}, at most ${most} in a second`];
}
function drawHosts(field, width) {
  const tall = hostsTall(), pitch = tall + 8, most = mostOf(field);
  let out = timeAxis(width, pitch * record.hosts.length);
  record.hosts.forEach((host, row) => {
    const base = row * pitch + tall + 2;
    out += `<path fill="var(--native)" d="${area(base, tall, host[field], null, most, width)}"/>` +
      `<line x1="${xOf(0, width)}" x2="${xOf(total, width)}" y1="${base}" y2="${base}" ` +
      `stroke="var(--weak)"/>` + label(hostName(host.host), base - tall / 2 + 6, width);
  });
  return out;
}
function readHosts(field, text) {
  return i => `${when(i)}: ` + record.hosts.filter(h => h[field][i] !== null)
    .map(h => `${hostName(h.host)}: ${text(h[field][i])}`).join('; ');
}

// ---- the heat map: a pixel for each band and column of the window, made taller ----
let touched, rowOf, heatRows, heatHeight, hottest;
const rateOf = (requests, i) => requests / Math.max(0.001, spans[i] / 1000);
function deriveHeat() {
  const seen = new Uint8Array(record.bands || 1);
  hottest = 0;
  record.requests.forEach((row, i) => {
    for (let k = 0; k < row.length; k += 2) {
      seen[row[k]] = 1;
      hottest = Math.max(hottest, rateOf(row[k + 1], i));
    }
  });
  touched = [...seen.keys()].filter(band => seen[band]);
  rowOf = new Uint16Array(seen.length);
  touched.forEach((band, row) => { rowOf[band] = row; });
  heatRows = Math.max(1, touched.length);
  heatHeight = Math.max(48, Math.min(384, heatRows * 14));
}
function heatColour(share) {
  const at = share * (heatColours.length - 1), i = Math.min(heatColours.length - 2, Math.floor(at));
  return heatColours[i].map((v, c) => v + (heatColours[i + 1][c] - v) * (at - i));
}
const bandSize = () => record.memory_mib / record.bands;
function describeHeat() {
  const band = bandSize();
  $('heat-legend').innerHTML = [0, 0.25, 0.5, 0.75, 1].map(share =>
    `<span><i style="background:rgb(${heatColour(share).map(Math.round)})"></i>${
    short(Math.expm1(share * Math.log1p(hottest)))}/s</span>`).join('') +
    `<span>for each ${band >= 1 ? `${band} MiB` : `${band * 1024} KiB`}</span>`;
  return [heatHeight + 22, `requests for pages by address and time; at most ${
    short(hottest)} in a second for ${band} MiB`];
}
function drawHeat(width) {
  const left = labelWidth(width), inner = width - left - 8;
  const tall = heatHeight / heatRows, every = Math.ceil(14 / tall);
  let out = timeAxis(width, heatHeight);
  touched.forEach((part, row) => {
    if (row % every === 0)
      out += `<text x="0" y="${Math.max(10, row * tall + tall / 2 + 4)}">${
        +(part * bandSize()).toFixed(1)} MiB</text>`;
  });
  return [out, `<canvas width="${Math.round(inner * (devicePixelRatio || 1))}" height="${
    heatRows}" style="position:absolute;top:0;left:${left}px;width:calc(100% - ${
    left + 8}px);height:${heatHeight}px"></canvas>`];
}
// Of several samples in one column of pixels, the hottest is shown.
function fillHeat(width) {
  const canvas = $('heat').querySelector('canvas'), pen = canvas.getContext('2d');
  const image = pen.createImageData(canvas.width, heatRows);
  const levels = new Uint8Array(canvas.width * heatRows), pixels = image.data;
  const left = labelWidth(width), scale = canvas.width / (width - left - 8);
  const most = Math.log1p(hottest || 1);
  record.requests.forEach((row, i) => {
    const [x, w] = placeOf(i, width), from = Math.max(0, Math.floor((x - left) * scale));
    const to = Math.min(canvas.width, Math.max(from + 1, Math.ceil((x - left + w) * scale)));
    for (let k = 0; k < row.length; k += 2) {
      const level = Math.round(255 * Math.log1p(rateOf(row[k + 1], i)) / most);
      const line = rowOf[row[k]] * canvas.width;
      for (let at = line + from; at < line + to; at++)
        if (levels[at] < level)
          levels[at] = level;
    }
  });
  const colours = Array.from({ length: 256 }, (_, level) => heatColour(level / 255));
  levels.forEach((level, at) => {
    const [red, green, blue] = colours[level];
    pixels[4 * at] = red;
    pixels[4 * at + 1] = green;
    pixels[4 * at + 2] = blue;
    pixels[4 * at + 3] = 255;
  });
  pen.putImageData(image, 0, 0);
}
function readHeat(i, chart) {
  const row = record.requests[i], parts = [], size = bandSize();
  for (let k = 0; k < row.length; k += 2)
    parts.push([row[k], rateOf(row[k + 1], i)]);
  const under = chart.pointerY === undefined || chart.pointerY === null ? -1 :
    touched[Math.min(heatRows - 1, Math.floor(chart.pointerY / heatHeight * heatRows))];
  const shown = under >= 0 ? parts.filter(p => p[0] === under) :
    parts.sort((a, b) => b[1] - a[1]).slice(0, 4);
  const text = shown.map(([part, rate]) => `${(part * size).toFixed(0)} MiB: ${short(rate)}/s`);
  return `${when(i)}: ${text.join('; ') || (under >= 0 ? `${
    (under * size).toFixed(0)} MiB: no requests` : 'no requests')}`;
}

// ---- fetch times ----
let fetchSum, firstBucket, shownBuckets;
function deriveTimes() {
  const buckets = record.fetch_us8_log2;
  const last = buckets.length - 1 - Math.max(0, [...buckets].reverse().findIndex(v => v));
  fetchSum = buckets.reduce((a, b) => a + b, 0);
  firstBucket = Math.max(0, buckets.findIndex(v => v));
  shownBuckets = fetchSum ? buckets.slice(firstBucket, last + 1) : [];
}
const placeBar = (i, width) => {
  const left = 46, w = (width - left - 8) / Math.max(1, shownBuckets.length);
  return [left + i * w, w];
};
const bucketStart = i => micros(2 ** (firstBucket + i) / 8);
const bucketText = i => `${bucketStart(i)} to ${bucketStart(i + 1)}`;
const TIMES_TALL = 220;
const describeTimes = () =>
  [TIMES_TALL + 34, `${fetchSum} fetches by the time that they took`];
function drawTimes(width) {
  const tall = TIMES_TALL, most = largest(shownBuckets);
  const every = Math.ceil(shownBuckets.length / (width < 500 ? 4 : 8));
  let out = '';
  for (const part of [0, 0.5, 1])
    out += `<line x1="46" x2="${width}" y1="${8 + tall * (1 - part)}" y2="${8 + tall * (1 - part)
      }" stroke="var(--line)"/><text class="weak" x="40" text-anchor="end" y="${
      12 + tall * (1 - part)}">${short(most * part)}</text>`;
  shownBuckets.forEach((v, i) => {
    const [x, w] = placeBar(i, width), h = most ? v / most * tall : 0;
    out += `<rect x="${x + 1}" width="${Math.max(1, w - 2)}" y="${8 + tall - h}" height="${h
      }" fill="var(--native)"/>`;
    if (i % every === 0)
      out += `<text class="weak" x="${x}" y="${tall + 26}" text-anchor="${i ? 'middle' :
        'start'}">${micros(2 ** (firstBucket + i) / 8)}</text>`;
  });
  if (!fetchSum)
    out += `<text x="60" y="${tall / 2}">no page was fetched</text>`;
  return out;
}
function readTimes(i) {
  let below = 0;
  for (let k = 0; k <= i; k++)
    below += shownBuckets[k];
  return `${bucketText(i)}: ${shownBuckets[i]} of ${fetchSum} fetches, ${
    (100 * shownBuckets[i] / fetchSum).toFixed(1)} %; ${(100 * below / fetchSum).toFixed(1)
    } % were at most as slow`;
}

function showPages() {
  $('pages').innerHTML = record.pages.map(page => `<tr><td class="n">${
    page.requests}</td><td><code>${escaped(page.address)}</code></td><td><code>${
    escaped(page.symbols)}</code></td></tr>`)
    .join('') || '<tr><td colspan="3">none</td></tr>';
}
// ---- which chart is drawn when ----
// describe: sets the texts beside the chart; returns its height, and what it shows, in words.
// draw: returns the chart for a width, and what lies over it.
const all = {
  cpus: { describe: describeCpus, draw: drawCpus },
  heat: { describe: describeHeat, draw: drawHeat, fill: fillHeat },
  fetches: { describe: () => describeHosts('fetches', 'fetches', short),
    draw: width => drawHosts('fetches', width) },
  sent: { describe: () => describeHosts('sent', 'sent', bytes),
    draw: width => drawHosts('sent', width) },
  times: { describe: describeTimes, draw: drawTimes, always: true },
};
const stale = new Set();
// Draws a chart, if it is not drawn as it should be.
function paint(id) {
  if (!stale.delete(id))
    return;
  const width = $(id).clientWidth, { height, draw: drawn, fill } = all[id];
  const [chart, over] = [drawn(width)].flat();
  $(id).innerHTML = `<svg height="${height}" viewBox="0 0 ${width} ${height}">${chart}</svg>${
    over || ''}${cursor}`;
  if (fill)
    fill(width);
  if (again.has(id))
    again.get(id)();
}
const drawAll = () => [...stale].forEach(paint);
const NEAR = 300; // pixels below and above the window
const isNear = id => {
  const box = $(id).getBoundingClientRect();
  return box.top < innerHeight + NEAR && box.bottom > -NEAR;
};
function draw() {
  drawn = innerWidth;
  if ($('cpus').clientWidth < 100) // not shown just now
    return;
  for (const [id, chart] of Object.entries(all))
    if (n || chart.always) {
      let text;
      [chart.height, text] = chart.describe();
      if ($(id).getAttribute('aria-label') !== text)
        $(id).setAttribute('aria-label', text);
      $(id).style.minHeight = `${chart.height}px`;
      stale.add(id);
      // until it is drawn, its cursor could stand beyond a page that has become narrow
      $(id).querySelector('.cursor')?.style.setProperty('display', 'none');
    } else {
      stale.delete(id);
      $(id).innerHTML = $(id).style.minHeight = '';
    }
  [...stale].filter(isNear).forEach(paint);
}
const samples = () => n;
let started = false, drawn = 0;
function start() {
  started = true;
  addCursor('cpus', samples, placeOf, readCpus);
  addCursor('heat', samples, placeOf, readHeat);
  addCursor('fetches', samples, placeOf, readHosts('fetches', short));
  addCursor('sent', samples, placeOf, readHosts('sent', v => `${bytes(v)}/s`));
  addCursor('times', () => shownBuckets.length, placeBar, readTimes);
  addEventListener('resize', () => {
    if (innerWidth !== drawn)
      draw();
  });
  addEventListener('beforeprint', drawAll);
  const near = new IntersectionObserver(seen => seen.filter(e => e.isIntersecting)
    .forEach(e => paint(e.target.id)), { rootMargin: `${NEAR}px` });
  Object.keys(all).forEach(id => near.observe($(id)));
}
// Takes a whole record, and draws what can be seen of it.
function show(whole) {
  record = whole;
  ends = record.end_ms;
  spans = record.span_ms;
  n = ends.length;
  begin = n ? ends[0] - spans[0] : 0;
  total = n ? ends[n - 1] : 1;
  deriveHeat();
  deriveTimes();
  showFacts();
  showPages();
  if (!n && !record.live)
    $('what').textContent += '; the machine ran for too short a time to be seen';
  draw();
  if (!started)
    start();
}
return { show, drawAll, shown: () => record, heatColour, escaped, duration, short, bytes, hostName,
  hostColours, inks };
})();
