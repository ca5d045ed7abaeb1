// web.js - the page of `vmp web`: asks for new samples once a second, shows the console, and posts
// what the buttons ask for.  Every request but those for this page's own files has the token, which
// stands behind the # of the address at first.
'use strict';
(() => {
const $ = id => document.getElementById(id);
const { escaped, short, bytes, hostName, hostColours } = charts;
const KEPT_SAMPLES = 300, POLL_MS = 1000, AGAIN_MS = 1000;
const OVER_TIME = { hosts: ['ram_kib', 'fetches', 'given_up', 'sent', 'received'],
  processors: ['host', 'native', 'shared_memory', 'emulation'] };
let token = '', machine = null, ended = false;

// ---- requests ----
const ask = (path, options = {}) => fetch(path, { ...options, cache: 'no-store',
  headers: { Authorization: `Bearer ${token}` } });

function say(text) {
  if ($('what').textContent !== text)
    $('what').textContent = text;
}
function askForToken(why) {
  say(why);
  $('ask-token').hidden = false;
  $('machine').hidden = true;
  $('token').focus();
}

// ---- the record, which grows at its end ----
// Brings the lists of one host or processor to `before` samples, and appends the new ones.
function append(old, more, names, before, count) {
  for (const name of names) {
    const list = old[name] || new Array(before).fill(null);
    old[name] = list.concat(more ? more[name] : new Array(count).fill(null)).slice(-KEPT_SAMPLES);
  }
}
function appendAll(kind, key, more, before, count) {
  const old = machine[kind];
  for (const item of more[kind])
    if (!old.some(o => o[key] === item[key]))
      old.push({ [key]: item[key] });
  for (const item of old) {
    const now = more[kind].find(m => m[key] === item[key]);
    append(item, now, OVER_TIME[kind], before, count);
    if (now && now.name !== undefined)
      item.name = now.name;
  }
  old.sort((a, b) => a[key] - b[key]);
}
function take(more) {
  if (!machine || more.first !== machine.next)
    machine = { hosts: [], processors: [], moves: [], end_ms: [], span_ms: [], requests: [],
      live: true };
  const before = machine.end_ms.length, count = more.end_ms.length;
  for (const name of ['end_ms', 'span_ms', 'requests'])
    machine[name] = machine[name].concat(more[name]).slice(-KEPT_SAMPLES);
  appendAll('hosts', 'host', more, before, count);
  appendAll('processors', 'cpu', more, before, count);
  const begin = machine.end_ms.length ? machine.end_ms[0] - machine.span_ms[0] : 0;
  machine.moves = machine.moves.concat(more.moves).filter(([ms]) => ms > begin);
  machine.hosts = machine.hosts.filter(h => h.ram_kib.some(v => v !== null));
  for (const name of ['name', 'cpus', 'memory_mib', 'moves_lost', 'bands', 'pages',
    'fetch_us8_log2'])
    machine[name] = more[name];
  machine.next = more.first + count;
}
const last = list => list && list.length ? list[list.length - 1] : null;
const hostsNow = () => machine.hosts.filter(h => last(h.ram_kib) !== null);
const loadOf = (cpu, i) => cpu.native[i] === null ? null :
  Math.min(100, (cpu.native[i] + cpu.shared_memory[i] + cpu.emulation[i]) / 10);
function hostLoad(host, i) {
  const loads = machine.processors.filter(p => p.host[i] === host.host).map(p => loadOf(p, i));
  return loads.length ? loads.reduce((a, b) => a + b, 0) / loads.length : null;
}

// ---- tables ----
function spark(value, label) {
  const shown = 60, length = machine.end_ms.length, from = Math.max(0, length - shown);
  let path = '';
  for (let i = from; i < length; i++) {
    const v = value(i);
    if (v !== null)
      path += `M${(i - from + shown - (length - from)) * 1.5} 20v${
        (-0.5 - Math.min(100, v) * 0.19).toFixed(1)}h1.5V20z`;
  }
  return `<svg class="spark" viewBox="0 0 90 20" role="img" aria-label="${escaped(label)}">` +
    `<path d="${path}" fill="var(--native)"/><path d="M0 20H90" stroke="var(--weak)"/></svg>`;
}
const percent = value => value === null ? '' : `${value.toFixed(0)} %`;
const mark = host => `<i class="host-mark" style="background:${
  hostColours[host % hostColours.length]}"></i>`;

// Keeps the rows of a table, so that what has the keyboard's focus keeps it: each row is made once,
// and then its cells are filled anew.
function rows(id, items, key, make, fill) {
  const body = $(id);
  const there = new Map([...body.children].map(row => [row.dataset.key, row]));
  items.forEach((item, i) => {
    let row = there.get(String(item[key]));
    if (!row) {
      row = document.createElement('tr');
      row.dataset.key = item[key];
      make(row, item);
    }
    there.delete(String(item[key]));
    fill(row, item);
    if (body.children[i] !== row)
      body.insertBefore(row, body.children[i] || null);
  });
  there.forEach(row => row.remove());
}
function setCell(row, i, html) {
  const cell = row.children[i];
  if (cell.shown !== html)
    cell.innerHTML = html;
  cell.shown = html;
}
function showHosts() {
  const end = machine.end_ms.length - 1;
  rows('hosts', hostsNow(), 'host', (row, host) => {
    row.innerHTML = '<td></td><td class="n"></td><td></td><td class="n"></td><td class="n"></td>' +
      '<td class="n"></td><td class="n"></td><td><button>Remove</button></td>';
    const button = row.querySelector('button');
    button.setAttribute('aria-label', `Remove host ${host.host}`);
    button.addEventListener('click', () => doIt({ what: 'remove', host: host.host }, button));
  }, (row, host) => {
    setCell(row, 0, mark(host.host) + escaped(hostName(host.host).replace(/^host /, '')));
    setCell(row, 1, percent(hostLoad(host, end)));
    setCell(row, 2, spark(i => hostLoad(host, i), `load of host ${host.host}`));
    setCell(row, 3, `${(last(host.ram_kib) / 1024).toFixed(1)} MiB`);
    setCell(row, 4, short(last(host.fetches)));
    setCell(row, 5, short(last(host.given_up)));
    setCell(row, 6, bytes(last(host.sent)));
  });
}
function showProcessors() {
  const end = machine.end_ms.length - 1, hosts = hostsNow().map(h => h.host);
  rows('processors', machine.processors, 'cpu', (row, cpu) => {
    row.innerHTML = '<td></td><td class="n"></td><td></td><td><select></select> ' +
      '<button>Move</button></td>';
    const select = row.querySelector('select'), button = row.querySelector('button');
    select.setAttribute('aria-label', `host for CPU ${cpu.cpu}`);
    button.setAttribute('aria-label', `Move CPU ${cpu.cpu}`);
    select.addEventListener('change', () => { select.chosen = true; });
    button.addEventListener('click', () => {
      doIt({ what: 'move', cpu: cpu.cpu, host: select.value }, button)
        .finally(() => { select.chosen = false; });
    });
  }, (row, cpu) => {
    const select = row.querySelector('select'), at = last(cpu.host);
    setCell(row, 0, String(cpu.cpu));
    setCell(row, 1, percent(loadOf(cpu, end)));
    setCell(row, 2, spark(i => loadOf(cpu, i), `load of CPU ${cpu.cpu}`));
    if ([...select.options].map(o => o.value).join() !== hosts.join()) {
      select.innerHTML = hosts.map(h => `<option value="${h}">${escaped(hostName(h))}</option>`)
        .join('');
      select.chosen = false;
    }
    if (!select.chosen && at !== null)
      select.value = at;
  });
}
function showMoves() {
  const now = last(machine.end_ms) || 0;
  const lines = machine.moves.slice(-50).reverse().map(([ms, cpu, from, to, why]) =>
    `${Math.round((now - ms) / 1000)} s ago: CPU ${cpu} from ${hostName(from)} to ${
      hostName(to)}${why ? `; ${why}` : ''}`);
  const text = lines.join('\n') || 'none';
  if ($('moves').shown !== text)
    $('moves').innerHTML = `<pre>${escaped(text)}</pre>`;
  $('moves').shown = text;
}
let policyShown = '';
function showAll(answer) {
  take(answer.record);
  const fetched = machine.hosts.reduce((sum, h) => sum + (last(h.fetches) || 0), 0);
  machine.facts = [['processors', machine.cpus], ['hosts', hostsNow().length],
    ['came, went', `${answer.hosts_came}, ${answer.hosts_went}`],
    ['memory', `${machine.memory_mib} MiB`], ['policy', answer.policy],
    ['pages fetched/s', short(fetched)]];
  $('machine').hidden = false;
  charts.show(machine);
  showHosts();
  showProcessors();
  showMoves();
  $('add-name').hidden = !answer.cluster;
  if (policyShown !== answer.policy)
    $('policy').elements.policy.value = policyShown = answer.policy;
  say(answer.away ? 'The machine goes back to a checkpoint; it will go on.' : 'running');
}

// ---- commands ----
function note(className, text) {
  const line = document.createElement('pre');
  line.className = className;
  line.textContent = text;
  $('done').prepend(line);
  while ($('done').children.length > 50)
    $('done').lastChild.remove();
  return line;
}
async function doIt(what, button) {
  const form = new URLSearchParams(what);
  const line = note('', `${form} ...`);
  button.disabled = true;
  try {
    const response = await ask('/api/do', { method: 'POST', body: form.toString() });
    if (response.ok) {
      const answer = await response.json();
      line.textContent = `$ ${answer.command}\n${answer.text}`.trimEnd();
      line.className = answer.status ? 'failed' : '';
    } else {
      line.textContent = `${form}: ${await response.text()}`;
      line.className = 'failed';
    }
  } catch (error) {
    line.textContent = `${form}: no answer`;
    line.className = 'failed';
  }
  const hadFocus = document.activeElement === document.body;
  button.disabled = false;
  if (hadFocus && button.isConnected)
    button.focus();
}
function onForm(id, fields) {
  $(id).addEventListener('submit', event => {
    event.preventDefault();
    doIt(fields($(id).elements), $(id).querySelector('button'));
  });
}
onForm('add', e => e.host.value ? { what: 'add', host: e.host.value } : { what: 'add' });
onForm('policy', e => ({ what: 'policy', policy: e.policy.value }));
onForm('save', e => ({ what: 'save', file: e.file.value }));

// ---- the console ----
let terminal = null, replays = false;
// While the page has no room, as when a window is made small, the console keeps its size: what does
// not fit into its line with the cursor would be lost.
const LEAST_COLUMNS = 20;
const pause = ms => new Promise(done => setTimeout(done, ms));
// Keys are posted one after the other, so that they arrive in their order; those that are typed
// meanwhile go together.
let waiting = '', posting = false;
async function type(keys) {
  waiting += keys;
  if (posting)
    return;
  posting = true;
  while (waiting) {
    const encoded = new TextEncoder().encode(waiting);
    waiting = '';
    for (let at = 0; at < encoded.length; at += 2048)
      await ask('/api/console', { method: 'POST', body: encoded.slice(at, at + 2048) })
        .catch(() => null);
  }
  posting = false;
}
function resized({ cols, rows: lines }) {
  ask('/api/size', { method: 'POST', body: `columns=${cols}&rows=${lines}` }).catch(() => null);
}
async function readConsole() {
  const response = await ask('/api/console');
  if (!response.ok)
    return;
  const reader = response.body.getReader();
  terminal.reset();
  // What was printed earlier comes again: a terminal that is asked for its state in it must not
  // answer now.
  replays = true;
  setTimeout(() => { replays = false; }, 500);
  setTimeout(() => resized(terminal), 200);
  for (;;) {
    const { done, value } = await reader.read();
    if (done)
      return;
    await new Promise(written => terminal.write(value, written));
  }
}
async function runConsole() {
  while (!ended) {
    await readConsole().catch(() => null);
    await pause(AGAIN_MS);
  }
}
function openConsole() {
  if (terminal)
    return;
  if (!window.Terminal || !window.FitAddon) {
    $('console').className = 'missing';
    $('console-note').textContent = '';
    $('console').innerHTML = '<p>The console needs xterm.js, which this vmp was built or ' +
      'installed without: <code>make web</code> fetches it. ' +
      '<code>vmp console</code> shows the console in a terminal.</p>';
    return;
  }
  const fit = new FitAddon.FitAddon();
  terminal = new Terminal({ fontSize: 13, screenReaderMode: false, cursorBlink: false,
    fontFamily: 'ui-monospace, "DejaVu Sans Mono", monospace', minimumContrastRatio: 4.5,
    theme: { background: '#101418', foreground: '#e6edf3' } });
  terminal.loadAddon(fit);
  terminal.open($('console'));
  fit.fit();
  terminal.onData(type);
  for (const final of ['n', 'c'])
    terminal.parser.registerCsiHandler({ final }, () => replays);
  terminal.onResize(resized);
  // The browser has a use for F6, too.  The focus moves when the key is released: a terminal that
  // does not see that takes no text but from keys.
  let next = null;
  terminal.attachCustomKeyEventHandler(event => {
    if (event.key !== 'F6')
      return true;
    event.preventDefault();
    if (event.type === 'keydown')
      next = event.shiftKey ? $('title') : $('cpus');
    else if (event.type === 'keyup')
      next?.focus();
    return false;
  });
  new ResizeObserver(() => {
    if (fit.proposeDimensions()?.cols >= LEAST_COLUMNS)
      fit.fit();
  }).observe($('console'));
  runConsole();
}

// ---- the loop ----
async function poll() {
  const response = await ask(`/api/record?from=${machine ? machine.next : 0}`);
  if (response.status === 401) {
    token = '';
    sessionStorage.removeItem('token');
    return askForToken('This is not the token of this vmp web.');
  }
  if (!response.ok) {
    ended = true;
    return say(`vmp web refuses: ${await response.text()}`);
  }
  showAll(await response.json());
  openConsole();
}
async function run() {
  let failures = 0;
  while (token && failures < 3) {
    if (!document.hidden)
      await poll().then(() => { failures = 0; }, () => { failures++; });
    await pause(POLL_MS);
  }
  if (failures) {
    ended = true;
    say('The machine has ended, or vmp web has.');
    document.querySelectorAll('button, input, select').forEach(e => { e.disabled = true; });
  }
}
$('ask-token').addEventListener('submit', event => {
  event.preventDefault();
  begin($('token').value.trim());
});
function begin(with_token) {
  if (!/^[!-~]+$/.test(with_token))
    return askForToken('This is no token.');
  token = with_token;
  sessionStorage.setItem('token', token);
  $('ask-token').hidden = true;
  run();
}
const given = location.hash.slice(1) || sessionStorage.getItem('token') || '';
if (location.hash)
  history.replaceState(null, '', location.pathname);
if (given)
  begin(given);
else
  askForToken('This page needs the token that vmp web has printed.');
})();
