/* The explorer: panels, tabs, the sentence about a number, download. */

import { End, Filter, Pair } from './ends.mjs';
import { List, Totals, warningOf } from './list.mjs';
import { FlowMap } from './map.mjs';
import { Matrix } from './matrix.mjs';
import { h, whole } from './tools.mjs';
import { View } from './view.mjs';

export class Explorer {
  constructor(model, root) {
    this.model = model;
    this.root = root;
    this.titles = { map: 'Map', matrix: 'Matrix', list: 'Largest', totals: 'Totals' };
    this.shading = model.isConfidential ? 'error' : 'reliability';
    if (!model.isConfidential && !model.header.graded) this.shading = 'size';
    this.filter = 'all';
    this.isBetween = false;
    this.build();
    window.addEventListener('hashchange', () => this.follow());
    this.show(this.viewAt(location.hash) ?? View.first(model, Object.keys(this.modes)[0]));
  }

  /* Everything on the screen, for the axes that are laid out. */
  build() {
    const { model } = this;
    const { isFlat } = model;
    this.modes = { matrix: new Matrix(this), list: new List(this), totals: new Totals(this) };
    if (model.places && model.isUsual && !isFlat) this.modes = { map: new FlowMap(this), ...this.modes };
    /* With one axis there is nothing to lay out: its totals are all there is. */
    if (isFlat) this.modes = { totals: this.modes.totals };
    const ends = isFlat ? [] : [0, 1].map((number) => new End(this, number));
    const further = model.axes.slice(2).map((_, i) => new Filter(this, i + 2));
    const nodes = (panels) => panels.map(({ node }) => node);
    const isEdition = ({ axis }) => axis.isEdition;
    this.ends = [...ends, ...further];
    this.tabs = Object.keys(this.modes).map((mode) => h('button', {
      type: 'button', role: 'tab', id: 'tab-' + mode, 'aria-controls': 'seen', 'data-mode': mode,
      onclick: () => this.go({ mode }), onkeydown: (event) => this.tabKey(event),
    }, this.titles[mode]));
    this.up = h('button', { class: 'action', type: 'button', id: 'zoom-out', onclick: () => this.goOut() }, '↑ Zoom out');
    this.save = h('button', { class: 'action', type: 'button', id: 'download', onclick: () => this.csv() }, 'Download CSV');
    this.says = h('p', { class: 'says', role: 'status', 'aria-live': 'polite' });
    this.warns = h('div', { id: 'warns' });
    this.seen = h('div', { id: 'seen', role: 'tabpanel' });
    this.legend = h('ul', { class: 'legend', 'aria-label': 'What the shades mean' });
    /* Closed at first, so that numbers are on the first screen. */
    this.around = h('details', { class: 'ends', open: this.around?.open },
      h('summary', {}, further.length ? 'Choose areas, levels and dimensions' : 'Choose areas and levels'),
      further.length ? h('div', {}, new Pair(this).node, nodes(further.filter((one) => !isEdition(one)))) : null, h('div', {}, nodes(ends)));
    const [numbers, between, ...choices] = this.choices();
    this.keys = h('p', { class: 'note more' }, 'Click a number to zoom into both ends, a heading to zoom into one. '
      + 'Keys: Tab to the matrix, arrows to move, Enter to zoom in, Escape to zoom out.');
    this.root.replaceChildren(...(isFlat ? [h('div', { class: 'bar' }, numbers, h('span', { class: 'push' }), this.save), this.seen] : [
      h('div', { class: 'bar' }, h('div', { class: 'tabs', role: 'tablist', 'aria-label': 'How to show it' }, this.tabs), this.up, numbers, nodes(further.filter(isEdition))),
      this.around, this.warns, this.says, this.seen, this.legend,
      h('div', { class: 'bar' }, between, choices, h('span', { class: 'push' }), this.save), this.keys]));
    this.root.onkeydown = (event) => {
      if (event.key === 'Escape' && !this.view.isWhole) { this.goOut({ focus: true }); event.preventDefault(); }
    };
  }

  /* Choices of numbers, flows and shades, and on the confidential page of the listed cells. */
  choices() {
    const { model } = this;
    const select = (id, label, value, options, choose) => h('label', {}, h('span', {}, label), h('select', {
      class: 'field', id, onchange: (event) => { choose(event.target.value); this.show(this.view); },
    }, options.map(([one, text]) => h('option', { value: one, selected: one === value }, text))));
    const shades = [['error', 'true error'], ['reliability', 'reliability'], ['size', 'size']]
      .filter(([shade]) => shade === 'size' || (shade === 'error' ? model.isConfidential : model.header.graded));
    /* Flows within an area are the largest ones, and often of least interest. */
    this.between = h('label', {}, h('input', { type: 'checkbox', id: 'between', checked: this.isBetween, onchange: (event) => {
      this.isBetween = event.target.checked;
      this.show(this.view);
    } }), h('span', {}, 'Only between areas'));
    this.shade = select('shade', 'Shade by', this.shading, shades, (shade) => { this.shading = shade; });
    return [
      model.sets.estimated ? select('table', 'Numbers', model.using, [['published', 'published'], ['estimated', 'estimated']], (table) => model.use(table)) : null,
      model.isShared ? this.between : null,
      this.shade,
      model.isConfidential ? select('filter', 'List', this.filter, [['all', 'largest flows'], ['error', 'largest errors'],
        ['positive', 'false positives'], ['negative', 'false negatives']], (filter) => { this.filter = filter; }) : null,
    ];
  }

  /* Other axes as rows and columns. */
  layOut(pair) {
    const { mode } = this.view;
    this.arrange(pair);
    const view = View.first(this.model, mode in this.modes ? mode : 'matrix');
    this.show(view);
    location.hash = view.address;
  }

  arrange(pair) {
    if (this.model.pair.join() === pair.join()) return;
    this.model.arrange(pair);
    this.build();
  }

  /* The view of an address, whose axes are laid out for it; null if it has none. */
  viewAt(address) {
    const found = View.pairAt(this.model, address);
    if (!found) return null;
    if (found.rest.startsWith('#/')) this.arrange(found.pair);
    return View.at(this.model, found.rest, Object.keys(this.modes));
  }

  tabKey(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const at = this.tabs.indexOf(event.currentTarget);
    const next = this.tabs[(at + step + this.tabs.length) % this.tabs.length];
    this.go({ mode: next.dataset.mode });
    next.focus();
    event.preventDefault();
  }

  /* Change the view; the address changes with it, so the browser's Back works. */
  go(changes, { focus = false } = {}) {
    const next = this.view.with(changes);
    if (next.address === this.view.address) return;
    this.show(next);
    location.hash = next.address;
    if (focus) this.modes[next.mode].focus?.();
  }

  goOut(options) {
    if (this.view.isWhole) return;
    const up = this.view.out();
    this.go({ row: up.row, column: up.column }, options);
  }

  follow() {
    const isStart = location.hash === '' || location.hash === '#';
    if (isStart) this.arrange([0, 1]);
    const next = isStart ? View.first(this.model, Object.keys(this.modes)[0]) : this.viewAt(location.hash);
    if (next && next.address !== this.view.address) this.show(next);
  }

  show(view) {
    this.view = view;
    this.flows = this.model.flows(view);
    this.ends.forEach((end) => end.show(view));
    this.tabs.forEach((tab) => {
      const isOn = tab.dataset.mode === view.mode;
      tab.setAttribute('aria-selected', String(isOn));
      tab.setAttribute('tabindex', isOn ? '0' : '-1');
    });
    this.up.classList.toggle('hidden', view.isWhole);
    /* Totals are those of the whole table. */
    this.around.classList.toggle('hidden', view.mode === 'totals');
    this.keys.classList.toggle('hidden', view.mode !== 'matrix');
    const canBeWithin = ['list', 'map'].includes(view.mode) && view.rowLevel === view.columnLevel;
    this.between.classList.toggle('hidden', !canBeWithin);
    this.leavesOutWithin = canBeWithin && this.isBetween && this.model.isShared;
    this.seen.setAttribute('aria-labelledby', 'tab-' + view.mode);
    const mode = this.modes[view.mode];
    /* Map and totals have their own sentence. */
    const warning = ['map', 'totals'].includes(view.mode) ? null : warningOf(this.model, view.levels, view.edition);
    this.warns.replaceChildren(...(warning ? [warning] : []));
    this.seen.replaceChildren(mode.node);
    /* The sentence is first, because the map fills the room below. */
    this.sayWhole();
    mode.show(view, this.flows);
    this.shade.classList.toggle('hidden', mode instanceof List || mode.shading === 'none');
    this.shade.firstChild.textContent = view.mode === 'map' ? 'Shade flows by' : 'Shade by';
    this.explain();
  }

  /* Numbers of flows from the largest down (or as the confidential page filters them). */
  order(flows) {
    const { filter } = this;
    const kept = [];
    for (let i = 0; i < flows.n; i += 1) {
      const value = flows.value[i];
      if (this.leavesOutWithin && flows.row[i] === flows.column[i]) continue;
      if (!flows.truth ? value !== 0
        : filter === 'positive' ? value > 0 && flows.truth[i] === 0
          : filter === 'negative' ? value === 0 && flows.truth[i] > 0
            : value !== 0 || flows.truth[i] !== 0) kept.push(i);
    }
    const key = !flows.truth || filter === 'all' || filter === 'positive' ? (i) => Math.abs(flows.value[i])
      : filter === 'negative' ? (i) => flows.truth[i] : (i) => Math.abs(flows.value[i] - flows.truth[i]);
    const keys = new Float64Array(flows.n);
    for (const i of kept) keys[i] = key(i);
    return kept.sort((a, b) => keys[b] - keys[a] || a - b);
  }

  gradeBy(shading, view, value, truth, largest, areas) {
    if (shading === 'size' || shading === 'reliable') return 4 - Math.min(3, Math.floor(3.999 * Math.sqrt(Math.abs(value) / largest)));
    if (shading === 'error') return this.model.gradeOf(Math.abs(value - truth) / Math.max(truth, 1));
    return this.model.grade(view.levels, value, areas);
  }

  explain() {
    const mode = this.modes[this.view.mode];
    /* Lists are coloured by the reliability of their numbers, whatever is chosen for other views. */
    const shading = mode.shading ?? this.shading;
    const isTotal = this.model.isMeasured((mode.listed ?? this.view).levels);
    const isBySize = shading === 'size' || shading === 'reliable';
    this.root.classList.toggle('by-size', isBySize);
    this.shade.querySelector('select').value = isBySize ? 'size' : this.shading;
    if (shading === 'none') { this.legend.replaceChildren(); return; }
    const texts = isBySize ? ['largest', '', '', 'smallest'] : this.model.grades.map(({ name, label }) => `${name}: ${shading === 'error' ? label.replace(/:.*/, '') : label}`);
    const title = {
      reliability: `Error (95 %, ${isTotal ? 'for an area chosen beforehand' : 'of numbers of similar size'}):`, error: 'True error:', size: 'Size:',
      reliable: `All ${this.model.grades[0].label} (grade ${this.model.grades[0].name}), so shaded by size:`,
    }[shading];
    this.legend.replaceChildren(h('li', {}, title), ...texts.map((text, i) =>
      h('li', {}, h('span', { class: 'swatch r' + (i + 1) }), text)));
  }

  sayWhole() {
    if (this.view.edition === null) { this.says.replaceChildren('Numbers of different editions are not added up.'); return; }
    let value = 0;
    let truth = 0;
    for (let i = 0; i < this.flows.n; i += 1) {
      value += this.flows.value[i];
      if (this.flows.truth) truth += this.flows.truth[i];
    }
    this.say(this.view.row, this.view.column, { value, truth });
  }

  /* One number in words: its areas, its value, its interval. */
  say(row, column, { value: sum, truth }) {
    const { model } = this;
    const value = this.view.total(row, column, sum);
    const label = (number, { level, index }) =>
      index < 0 ? 'other areas' : model.axes[number].label(level, index);
    const { words } = model;
    const filters = this.view.further.map((focus, i) => ({ focus, axis: model.axes[i + 2] }))
      .filter(({ focus }) => focus.level > 0)
      .map(({ focus, axis }) => [', ', h('strong', {}, axis.label(focus.level, focus.index))]);
    const isWhole = words.from !== 'From' && !row.level && !column.level;
    const ends = isWhole ? ['In all'] : [`${words.from} `, h('strong', {}, label(0, row)), ` ${words.to} `, h('strong', {}, label(1, column))];
    const parts = [...ends, ...filters.flat(), ': '];
    if (model.isConfidential) {
      parts.push(h('strong', {}, whole(value)), ' released, ', h('strong', {}, whole(truth)), ` true (${value >= truth ? '+' : ''}${whole(value - truth)}).`);
    } else {
      parts.push(h('strong', {}, whole(value)), ` ${words.units}. `, this.view.worth(row, column, value));
    }
    this.says.replaceChildren(...parts);
  }

  csv() {
    const list = this.modes[this.view.mode === 'totals' ? 'totals' : 'list'];
    list.csv(this.view, this.flows);
  }
}
