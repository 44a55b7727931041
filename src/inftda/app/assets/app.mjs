/* The page of the app. The choices are one object; everything shown of them is asked of the server. */

const one = (selector) => document.querySelector(selector);
const all = (selector) => [...document.querySelectorAll(selector)];
const STEPS = ['table', 'unit', 'budget', 'preview', 'release', 'result'];
const COMMANDS = {
  table: ['plan'], unit: ['plan'], budget: ['plan'], preview: ['preview'], release: ['release'],
  result: ['verify', 'report', 'export', 'dossier'],
};
/* What the cards of the privacy unit set. */
const CARDS = { one: { trips: '1', exactly: '' }, id: { exactly: false }, most: { exactly: false } };
const POLL = 300;

let choices = {};
let step = 'table';
let form = 'terminal';
let seen = null;
let card = '';
let busy = false;
let again = false;
let released = '';
let typedFor = '';

/* --- asking the server */

async function ask(path, body) {
  let answer;
  try {
    answer = await fetch(path, body === undefined ? {} : {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify(body),
    });
  } catch {
    one('#gone').hidden = false;
    one('#gone').textContent = 'The app has ended. Start it again in the terminal: inftda app';
    throw new Error('gone');
  }
  return answer.json();
}

/* Asks what follows from the choices; while one question is open, only the last one waits. */
async function look() {
  again = true;
  if (busy) return;
  busy = true;
  try {
    while (again) {
      again = false;
      const found = await ask('look', { document: choices });
      if (!again) show(found);
    }
  } finally {
    busy = false;
  }
}

/* --- making nodes; texts of files are only ever text */

function node(kind, text = '', name = '') {
  const made = document.createElement(kind);
  made.textContent = text;
  if (name) made.className = name;
  return made;
}

function fill(selector, ...nodes) {
  one(selector).replaceChildren(...nodes);
}

const number = (value) => value.toLocaleString('en');
/* A number and its % stay on one line. */
const unbroken = (text) => text.replaceAll(' %', '\u00a0%');
const sentence = (text) => text.charAt(0).toUpperCase() + text.slice(1) + (/[.!?]$/.test(text) ? '' : '.');

/* --- choices and controls */

function get(section, key) {
  return (section ? choices[section] ?? {} : choices)[key];
}

function set(section, key, value) {
  const at = section ? (choices[section] ??= {}) : choices;
  if (value === '' || value === undefined || (Array.isArray(value) && !value.length)) delete at[key];
  else at[key] = value;
}

function read(control) {
  if (control.type === 'checkbox') return control.checked || '';
  if ('flag' in control.dataset) return control.value === '' ? '' : control.value === 'true';
  if ('list' in control.dataset) return control.value.split('\n').map((x) => x.trim()).filter(Boolean);
  return control.value.trim();
}

function write(control) {
  const value = get(control.dataset.section, control.dataset.key) ?? '';
  if (control.type === 'checkbox') control.checked = value === true;
  else if (Array.isArray(value)) control.value = value.join('\n');
  else if ('list' in control.dataset) control.value = String(value).replaceAll(',', '\n');
  else control.value = String(value);
  const more = control.closest('details.more');
  if (more && value !== '') more.open = true;
}

function writeAll() {
  for (const control of all('[data-key]')) write(control);
  const { trips, neighbours } = choices;
  card = get('release', 'person') ? 'id' : !trips || !neighbours ? card : trips === '1' ? 'one' : 'most';
  for (const radio of all('[name=card]')) radio.checked = radio.value === card;
  for (const radio of all('[name=neighbours]')) radio.checked = radio.value === neighbours;
  showAsked();
  moveSlider();
}

function changed(control) {
  set(control.dataset.section, control.dataset.key, read(control));
  if (control.dataset.key === 'epsilon') moveSlider();
  look();
}

function showAsked() {
  one('[data-for="release-person"]').hidden = card !== 'id';
  one('[data-for="shared-trips"]').hidden = card !== 'id' && card !== 'most';
}

function moveSlider() {
  const value = Number(choices.epsilon);
  if (value > 0) one('#slider').value = Math.log10(value);
}

/* --- steps */

function go(to, focus = true) {
  step = to;
  for (const section of all('section[data-step]')) section.hidden = section.dataset.step !== step;
  for (const button of all('.steps .go')) {
    if (button.dataset.step === step) {
      button.setAttribute('aria-current', 'step');
      button.scrollIntoView({ block: 'nearest', inline: 'center' });
    }
    else button.removeAttribute('aria-current');
  }
  const out = get('release', 'out');
  if (step === 'preview') propose('preview', 'html', 'preview.html');
  if (step === 'release') propose('release', 'out', 'release');
  showResult();
  if (step === 'result' && out) {
    propose('report', 'out', `${out}.html`);
    propose('export', 'out', `${out}-export`);
    propose('export', 'to', 'csv');
    propose('dossier', 'out', `${out}-dossier`);
  }
  if (focus) {
    one(`#h-${step}`).focus({ preventScroll: true });
    window.scrollTo(0, 0);
  }
  drawer();
  look();
}

function propose(section, key, value) {
  if (get(section, key) !== undefined) return;
  set(section, key, value);
  const control = one(`[data-section="${section}"][data-key="${key}"]`);
  if (control) write(control);
}

/* --- what follows from the choices */

function say(selector, part, words) {
  const place = one(selector);
  place.className = part.error ? 'state wrong' : part.value ? 'state right' : 'state';
  place.textContent = part.error ?? part.missing ?? words;
}

function show(found) {
  seen = found;
  showTable(found);
  say('#unit', found.unit, sentence(found.unit.value?.words ?? ''));
  showPlan(found.plan);
  for (const place of ['#ledger', '#ledger-again']) showLedger(place, found.ledger);
  showSheet(found.sheet);
  steps(found);
  drawer();
}

function showTable({ table, areas, columns }) {
  const known = table.value?.columns ?? [];
  say('#schema', table, '');
  if (table.value) {
    const list = node('ul', '', 'columns');
    for (const { name, type } of known) {
      const item = node('li');
      item.append(node('b', name), node('small', type));
      list.append(item);
    }
    fill('#schema', node('span', `${known.length} columns`), list);
  }
  fill('#columns', ...known.map(({ name }) => Object.assign(node('option'), { value: name })));
  say('#areas', areas, `Areas: ${areas.value?.words}.`);
  say('#meaning', columns, sentence(columns.value?.words ?? ''));
  one('#meaning').hidden = !columns.value && (!table.value || !areas.value);
  const guesses = Object.entries(table.value?.guesses ?? {}).filter(([role]) => role !== 'person'
    && get('', role) === undefined);
  one('#guess').hidden = !guesses.length;
  if (guesses.length) {
    const words = guesses.map(([role, name]) => `${role}: ${name}`).join(', ');
    if (one('#guess').dataset.words === words) return; // a button must not change under a click
    one('#guess').dataset.words = words;
    const button = node('button', 'Yes, use them', 'action');
    button.type = 'button';
    button.addEventListener('click', () => {
      for (const [role, name] of guesses) set('', role, name);
      writeAll();
      look();
      one('#shared-origin').focus();
    });
    fill('#guess', node('span', `A guess by their names: ${words}. Is that right? `), button);
  }
}

function showPlan(plan) {
  const value = plan.value;
  say('#plan', plan, '');
  for (const id of ['#figures', '#gauge', '#levels', '#levels-note', '#want']) one(id).hidden = !value;
  if (!value) return;
  fill('#plan', node('p', unbroken(sentence(value.guarantee))), ...value.warnings.map((text) => node('p', sentence(text), 'warning')));
  one('#success').textContent = unbroken(`at most ${value.success}`);
  fill('#cost', value.cost, node('small', `rho ${value.rho}`));
  one('#gauge i').style.width = `${100 * value.advantage}%`;
  const rows = value.levels.map((level) => {
    const row = node('tr');
    row.append(node('td', level.name, 'text'));
    for (const field of ['cells', 'typical', 'usable', 'max']) row.append(node('td', number(level[field])));
    return row;
  });
  rows.push(...value.totals.map((total) => {
    const row = node('tr');
    row.append(node('td', `Totals of ${total.name}`, 'text'), node('td'), node('td', number(total.within)),
      node('td', number(2 * total.within)), node('td'));
    return row;
  }));
  one('#levels tbody').replaceChildren(...rows);
  const names = [...value.levels, ...value.totals].map(({ name }) => name);
  const select = one('#want-level');
  if ([...select.options].map((option) => option.value).join() !== names.join()) {
    const kept = select.value;
    select.replaceChildren(...names.map((name) => Object.assign(node('option', name), { value: name })));
    select.value = names.includes(kept) ? kept : names.at(-1);
  }
}

function showLedger(place, ledger) {
  say(place, ledger, '');
  if (!ledger.value) return;
  const list = node('dl', '', 'ledger');
  for (const [title, text, part] of [
    ['Budget', ledger.value.budget, null],
    ['Spent before', ledger.value.before, ledger.value.share_before],
    ['This release', ledger.value.cost, null],
    ['Spent after', ledger.value.after, ledger.value.share_after],
  ]) {
    const words = node('dd', text);
    if (part !== null) {
      const gauge = node('span', '', 'gauge');
      gauge.append(node('i'));
      gauge.firstChild.style.width = `${100 * part}%`;
      words.append(gauge);
    }
    list.append(node('dt', title), words);
  }
  fill(place, list);
}

function showSheet(sheet) {
  one('#sheet').hidden = !sheet.value;
  say('#sheet-says', sheet, '');
  one('#sheet-says').hidden = Boolean(sheet.value);
  if (!sheet.value) return;
  fill('#sheet-rows', ...sheet.value.rows.flatMap(([title, text]) => [node('dt', title), node('dd', unbroken(text))]));
  one('#type-this').textContent = sheet.value.type;
  one('#release').textContent = sheet.value.button;
  // What was typed counts for the sheet that was read, and for no other.
  const now = JSON.stringify(sheet.value);
  if (typedFor && typedFor !== now) one('#typed').value = '';
  typedFor = now;
  arm();
}

function arm() {
  const is_running = !one('#job').hidden;
  one('#release').disabled = is_running || one('#typed').value !== seen?.sheet.value?.type;
}

function steps(found) {
  const brief = {
    table: found.columns.value && found.areas.value
      ? `${choices.release?.flows ?? 'A query'}; ${found.areas.value.words}` : '',
    unit: found.unit.value?.words,
    budget: found.plan.value ? `${found.plan.value.cost}; an attacker is right at most ${found.plan.value.success}` : '',
    preview: jobs.preview?.ok ? 'Simulated' : 'May be left out',
    release: released ? `Published in ${released}` : get('release', 'out') ? `To ${get('release', 'out')}` : '',
    result: jobs.verify?.ok ? 'Verified' : '',
  };
  const wrong = {
    table: found.table.error ?? found.areas.error ?? found.columns.error,
    unit: found.unit.error, budget: found.plan.error, release: found.ledger.error,
  };
  for (const name of STEPS) {
    const button = one(`.steps [data-step="${name}"]`);
    button.dataset.state = wrong[name] ? 'wrong' : brief[name] && name !== 'preview' ? 'right'
      : name === 'preview' && jobs.preview?.ok ? 'right' : '';
    one(`[data-says="${name}"]`).textContent = wrong[name] ? 'Something is wrong' : brief[name] || 'Not yet';
  }
}

/* --- the drawer */

function drawer() {
  const found = seen?.drawer;
  if (!found) return;
  let text = found.error ?? '';
  if (found.value) {
    const { commands, toml } = found.value;
    text = form === 'toml' ? toml : COMMANDS[step].map((name) => commands[name][form]).join('\n\n');
  }
  one('#shown').textContent = text;
}

/* --- jobs */

const jobs = {};

async function run(command, more = {}) {
  const slot = one(`[data-slot="${command}"]`);
  slot.replaceChildren();
  const begun = await ask('run', { command, document: choices, ...more });
  if (begun.command === undefined) {
    slot.append(node('p', begun.error, 'state wrong'));
    return;
  }
  slot.append(one('#job'));
  await follow(command);
}

async function follow(command) {
  one('#job').hidden = false;
  one('#cancel').disabled = false;
  one(`[data-slot="${command}"]`).append(one('#job'));
  const bar = one('#job-bar');
  lock(true);
  for (;;) {
    const job = await ask('job');
    if (!job.running) {
      jobs[command] = job;
      break;
    }
    const [what, done, total, unit] = job.progress ?? [];
    one('#job-says').textContent = job.cancelled ? 'Cancelling …'
      : what ? `${what}: ${number(done)} of ${number(total)} ${unit}` : 'Reading …';
    if (what && total) Object.assign(bar, { max: total, value: done });
    else bar.removeAttribute('value');
    await new Promise((resolve) => { setTimeout(resolve, POLL); });
  }
  one('#job').hidden = true;
  document.body.append(one('#job'));
  lock(false);
  ended(command);
}

function lock(is_running) {
  for (const button of all('.run')) button.disabled = is_running;
  arm();
}

function ended(command) {
  const job = jobs[command];
  const slot = one(`[data-slot="${command}"]`);
  const is_page = command === 'report' || command === 'preview';
  slot.replaceChildren();
  if (job.ok && !is_page) (command === 'release' ? one('#result-said') : slot).replaceChildren(...answer(job.answer));
  if (job.error) {
    const box = node('div', '', 'state wrong');
    box.setAttribute('role', 'alert');
    box.append(...job.error.split('\n').map((line) => node('p', sentence(line))));
    slot.append(box);
  }
  for (const text of job.notes) slot.append(node('p', text, text.startsWith('Warning') ? 'warning' : 'hint'));
  if (job.ok && is_page) {
    const file = get(command, command === 'report' ? 'out' : 'html');
    slot.append(node('p', `This page is in ${file}; it needs no network.`), framed(command));
  }
  if (command === 'release') {
    one('#typed').value = '';
    if (job.ok) {
      released = get('release', 'out');
      go('result');
      run('verify');
    }
  }
  if (seen) steps(seen);
  look();
}

function framed(command) {
  const frame = node('iframe', '', 'page');
  frame.setAttribute('sandbox', 'allow-scripts allow-downloads');
  frame.title = command === 'report' ? 'The page for readers' : 'The preview';
  frame.src = `shown/${command}`;
  return frame;
}

function showResult() {
  const out = get('release', 'out');
  one('#result-parts').hidden = !out;
  one('#result-says').textContent = released
    ? `The release is in the folder ${released}, which can be published as it is.`
    : out ? `Nothing was released yet, unless an earlier release is in the folder ${out}.` : 'There is no release yet.';
}

/* What a command prints: labels with sentences, checks that passed, and lines of tables. */
function answer(text) {
  const made = [];
  const last = (kind) => (made.at(-1)?.tagName === kind.toUpperCase() ? made.at(-1) : null);
  for (const line of text.split('\n')) {
    const label = /^([A-Z][\w ]{0,11}):\s+(.+)$/.exec(line);
    const check = /^ok {2}(.+)$/.exec(line);
    if (label) {
      const list = last('dl') ?? made[made.push(node('dl', '', 'said')) - 1];
      list.append(node('dt', label[1]), node('dd', label[2]));
    } else if (check) {
      const list = last('ul') ?? made[made.push(node('ul', '', 'checks')) - 1];
      list.append(node('li', check[1]));
    } else if (line.trim() && !line.includes('  ')) {
      made.push(node('p', line));
    } else if (line.trim()) {
      const block = last('pre') ?? made[made.push(node('pre', '', 'lines')) - 1];
      block.textContent += `${line}\n`;
    } else if (last('pre')) last('pre').textContent += '\n';
  }
  return made;
}

/* --- choosing files */

let target = null;
let folder = '';

async function browse(to) {
  const found = await ask('files', { folder: to });
  if (found.error) {
    one('#chooser-where').textContent = found.error;
    return;
  }
  folder = found.folder;
  one('#chooser-where').textContent = folder || 'The start folder';
  const entry = (name, kind, act) => {
    const item = node('li');
    const button = node('button', name, kind);
    button.type = 'button';
    button.addEventListener('click', act);
    item.append(button);
    return item;
  };
  const path = (name) => (folder ? `${folder}/${name}` : name);
  const up = folder ? [entry('One folder up', 'up', () => browse(folder.split('/').slice(0, -1).join('/')))] : [];
  fill('#chooser-list', ...up,
    ...found.folders.map((name) => entry(`${name}/`, 'inner', () => browse(path(name)))),
    ...found.files.map((name) => entry(name, 'file', () => take(path(name)))));
  one('#chooser-list button')?.focus();
}

function take(path) {
  one('#chooser').close();
  if (target.id === 'open') openFile(path);
  else {
    const control = one(`#${target.dataset.target}`);
    if ('list' in control.dataset) {
      const stem = path.split('/').at(-1).split('.')[0];
      const columns = (seen?.table.value?.columns ?? []).map((column) => column.name);
      const name = columns.find((column) => stem.startsWith(column) || column.startsWith(stem)) ?? stem;
      control.value += `${control.value && !control.value.endsWith('\n') ? '\n' : ''}${name}=${path}`;
    } else control.value = path;
    changed(control);
    control.focus();
  }
}

async function openFile(path) {
  const found = await ask('open', { path });
  if (found.error) {
    one('#gone').hidden = false;
    one('#gone').textContent = found.error;
    return;
  }
  one('#gone').hidden = true;
  choices = found;
  one('#naming-path').value = path;
  writeAll();
  go('table');
}

async function save() {
  const found = await ask('save', { path: one('#naming-path').value.trim(), document: choices });
  one('#naming-says').textContent = found.error ?? '';
  if (!found.error) one('#naming').close();
}

/* --- what the user does */

for (const button of all('.go')) button.addEventListener('click', () => go(button.dataset.step));
for (const control of all('[data-key]')) control.addEventListener('change', () => changed(control));
for (const key of ['epsilon', 'delta', 'total']) {
  const control = one(`#shared-${key}`) ?? one(`#plan-${key}`);
  control.addEventListener('input', () => changed(control));
}
one('#slider').addEventListener('input', () => {
  set('', 'epsilon', String(Number((10 ** Number(one('#slider').value)).toPrecision(2))));
  write(one('#shared-epsilon'));
  look();
});
for (const radio of all('[name=card]')) {
  radio.addEventListener('change', () => {
    card = radio.value;
    for (const [key, value] of Object.entries(CARDS[card])) set('', key, value);
    if (card !== 'one' && choices.trips === '1') set('', 'trips', '');
    if (card !== 'id') set('release', 'person', '');
    writeAll();
    look();
  });
}
for (const radio of all('[name=neighbours]')) {
  radio.addEventListener('change', () => { set('', 'neighbours', radio.value); look(); });
}
for (const button of [...all('.choose'), one('#open')]) {
  button.addEventListener('click', () => {
    target = button;
    one('#chooser-folder').hidden = button.id === 'open';
    fill('#chooser-list');
    one('#chooser').showModal();
    browse('');
  });
}
one('#chooser-folder').addEventListener('click', () => take(folder || '.'));
one('#chooser-close').addEventListener('click', () => one('#chooser').close());
one('#save').addEventListener('click', () => {
  one('#naming-path').value ||= 'release.toml';
  one('#naming-says').textContent = '';
  one('#naming').showModal();
});
one('#naming-form').addEventListener('submit', (event) => { event.preventDefault(); save(); });
one('#naming-close').addEventListener('click', () => one('#naming').close());
one('#want').addEventListener('submit', async (event) => {
  event.preventDefault();
  one('#want-says').textContent = 'Searching …';
  const found = await ask('solve', {
    document: choices, level: one('#want-level').value, most: one('#want-most').value.trim(),
  });
  one('#want-says').textContent = found.error ?? `Epsilon ${found.epsilon}: ${found.words.join('; ')}.`;
  if (found.error) return;
  set('', 'epsilon', found.epsilon);
  writeAll();
  look();
});
one('#typed').addEventListener('input', arm);
one('#sheet').addEventListener('submit', (event) => {
  event.preventDefault();
  if (!one('#release').disabled) run('release', { typed: one('#typed').value });
});
for (const button of all('.run')) button.addEventListener('click', () => run(button.dataset.command));
one('#cancel').addEventListener('click', () => { one('#cancel').disabled = true; ask('cancel', {}); });
const tabs = all('[role=tab]');
function choose(tab) {
  form = tab.dataset.form;
  for (const other of tabs) {
    other.setAttribute('aria-selected', String(other === tab));
    other.tabIndex = other === tab ? 0 : -1;
  }
  one('#shown').setAttribute('aria-labelledby', tab.id);
  drawer();
}
for (const tab of tabs) {
  tab.addEventListener('click', () => choose(tab));
  tab.addEventListener('keydown', (event) => {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!by) return;
    const next = tabs[(tabs.indexOf(tab) + by + tabs.length) % tabs.length];
    choose(next);
    next.focus();
  });
}
one('#copy').addEventListener('click', async () => {
  await navigator.clipboard.writeText(one('#shown').textContent);
  one('#copy').textContent = 'Copied';
  setTimeout(() => { one('#copy').textContent = 'Copy'; }, 1500);
});

choices = await ask('state');
if (choices.epsilon === undefined && choices.rho === undefined) set('', 'epsilon', '1');
writeAll();
go('table', false);
const under_way = await ask('job');
if (under_way.running) {
  go({ preview: 'preview', release: 'release' }[under_way.command] ?? 'result', false);
  follow(under_way.command);
}
document.documentElement.dataset.ready = 'yes';
