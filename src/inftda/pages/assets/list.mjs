/* Numbers in a list, with the reliability of each: the largest flows of a view, or totals of an axis. */

import { fileOf, flowRows, totalRows } from './rows.mjs';
import { download, h, s, whole } from './tools.mjs';

const PAGE_ROWS = 50;
const TOP_FLOWS = 10;

/* How far off a number is, in a cell of a table. */
function worthChip(model, levels, value, areas) {
  const error = model.error(levels, value, areas);
  if (!error) return h('span', { class: 'muted' }, 'unknown');
  const grade = model.grade(levels, value, areas);
  const text = `${whole(error.low)}–${whole(error.high)}`;
  const { name, label } = model.grades[grade - 1];
  const chip = [h('span', { class: 'graded', title: label }, h('span', { class: 'chip r' + grade }, text), h('span', { class: 'grade' }, name))];
  const unlisted = model.unlisted(levels, value, areas);
  if (unlisted) chip.push(h('span', { class: 'muted', title: 'In flows too small to be listed' }, ` ${whole(unlisted)} unlisted`));
  return chip;
}

/* Note above numbers of which some should not be used, or which have no intervals. */
export function warningOf(model, levels, edition) {
  const advice = model.adviceOf(levels, edition);
  return advice ? h('p', { class: 'use', role: 'note' }, advice) : null;
}

const headCell = (text, kind = null) => h('th', { scope: 'col', class: kind }, text);
const unseenHead = (text, kind = null) => headCell(h('span', { class: 'unseen' }, text), kind);

/* A list of numbers: levels on each axis, the axes that are named, and for each row its areas, its
   value and, on the confidential page, the true one. */
export class List {
  constructor(explorer) {
    this.explorer = explorer;
    this.model = explorer.model;
    this.table = h('div', {});
    this.node = h('div', {}, this.table);
    this.limit = PAGE_ROWS;
  }

  /* The flows of a view, as the explorer orders them. */
  rows(view, flows) { return flowRows(view, flows, this.explorer.order(flows)); }

  show(view, flows) {
    if (this.view !== view) this.limit = PAGE_ROWS;
    this.view = view;
    const found = this.rows(view, flows);
    const rows = found.rows.filter(({ value, areas }) => !this.leavesOut(found.levels, value, areas));
    this.listed = { ...found, rows, leftOut: found.rows.length - rows.length };
    this.draw();
  }

  get shading() {
    return !this.model.isConfidential && this.model.hasIntervals(this.listed.levels) ? 'reliability' : 'none';
  }

  /* The largest flows are no list of numbers that may be zero. */
  leavesOut(levels, value, areas) { return this.model.mayBeZero(levels, value, areas); }

  draw() {
    const { model, listed } = this;
    const { levels, rows, titles } = listed;
    const left = rows.length - this.limit;
    const shown = rows.slice(0, this.limit);
    const largest = shown.reduce((most, { value }) => Math.max(most, Math.abs(value)), 1);
    const isSecret = model.isConfidential;
    const head = [headCell('#', 'rank'), titles.map((title) => headCell(title, 'text')),
      headCell(isSecret ? 'Released' : model.words.unit),
      isSecret ? [headCell('True'), headCell('Error')]
        : model.hasIntervals(levels) ? headCell('True number (95\u00a0%)') : null,
      unseenHead('Bar', 'wide')];
    this.table.replaceChildren(...[
      this.note(),
      h('div', { class: 'scroll' }, h('table', { class: listed.named.length === 1 ? 'flows single' : 'flows' }, h('thead', {}, h('tr', {}, head)),
        h('tbody', {}, shown.map((row, rank) => this.row(row, rank, largest))))),
      left > 0 ? h('button', { class: 'action more', type: 'button', onclick: () => { this.limit += 2 * PAGE_ROWS; this.draw(); } },
        `Show ${whole(Math.min(left, 2 * PAGE_ROWS))} more of ${whole(left)}`) : null,
    ].flat().filter(Boolean));
  }

  row({ areas, value, truth }, rank, largest) {
    const { model } = this;
    const { levels, named } = this.listed;
    return h('tr', {},
      h('td', { class: 'rank muted' }, whole(rank + 1)),
      named.map((number) => h('td', { class: 'text' }, this.name(number, levels[number], areas[number]))),
      h('td', {}, whole(value)),
      model.isConfidential ? this.truth(value, truth)
        : model.hasIntervals(levels) ? h('td', {}, worthChip(model, levels, value, areas)) : null,
      h('td', { class: 'wide' }, s('svg', { 'aria-hidden': 'true' },
        s('rect', { width: (100 * Math.abs(value) / largest).toFixed(2) + '%', height: '100%', rx: 2 }))));
  }

  /* An area that one can zoom into. */
  name(number, level, index) {
    const axis = this.model.axes[number];
    const [label, code] = [axis.label(level, index), axis.code(level, index)];
    return h('button', {
      class: 'link', type: 'button', title: label === code ? null : code,
      onclick: () => this.explorer.go({ [number === 0 ? 'row' : 'column']: { level, index } }),
    }, label);
  }

  truth(value, truth) {
    const kind = (value === 0) !== (truth === 0) ? 'wrong' : null;
    const error = value - truth;
    return [h('td', { class: kind }, whole(truth)), h('td', { class: kind }, (error > 0 ? '+' : '') + whole(error))];
  }

  /* How many there are, before any is read. */
  note() {
    const { model } = this;
    const { rows, leftOut } = this.listed;
    const { cells } = model.words;
    let text = `${whole(rows.length)} ${cells} in view.`;
    if (!rows.length && !leftOut) text = 'There is nothing to show here: no flow was published.';
    else if (model.isEstimated) text += ' Estimates by a model: they are no list of flows that exist.';
    if (leftOut) text += ` ${whole(leftOut)} more may be zero and are left out; the download has them.`;
    return h('p', { class: 'note' }, text);
  }

  /* Everything that is listed, not only the rows on the screen. */
  csv(view, flows) {
    const { name, lines } = fileOf(this.model, this.rows(view, flows));
    download(name, lines);
  }
}

/* A few of the largest flows, beside a map or a matrix. */
export class Top {
  constructor(explorer) {
    this.explorer = explorer;
    this.title = h('h3', {});
    this.list = h('ol', { class: 'top' });
    this.node = h('div', {}, this.title, this.list);
  }

  /* The first flows of those that are numbered, which are all within areas or all between them. */
  show(view, flows, numbers, isWithin) {
    const { explorer, explorer: { model } } = this;
    this.isShown = numbers.length > 0;
    this.node.classList.toggle('hidden', !this.isShown);
    this.title.textContent = `Largest flows ${isWithin ? 'within' : 'between'} areas`;
    this.list.replaceChildren(...numbers.slice(0, TOP_FLOWS).map((i) => {
      const ends = [[view.rowLevel, flows.row[i]], [view.columnLevel, flows.column[i]]].map(([level, index]) => ({ level, index }));
      const grade = model.isConfidential ? null : model.grade(view.levels, flows.value[i], view.areas(flows.row[i], flows.column[i]));
      const labels = ends.map(({ level, index }, number) => model.axes[number].label(level, index));
      return h('li', {}, h('button', { class: 'link', type: 'button', onclick: () =>
        explorer.say(...ends, { value: flows.value[i], truth: flows.truth?.[i] ?? 0 }) }, isWithin ? labels[0] : labels.join(' → ')),
      h('span', {}, whole(flows.value[i]), grade ? h('span', { class: 'grade', title: model.grades[grade - 1].label }, model.grades[grade - 1].name) : null));
    }));
  }

  /* Flows of a view between the finest areas that can be used, or within them if there are no others. */
  showFine(view) {
    const { explorer, explorer: { model } } = this;
    const [rowLevel, columnLevel] = model.header.opens;
    const fine = view.with({ rowLevel: Math.max(view.rowLevel, rowLevel), columnLevel: Math.max(view.columnLevel, columnLevel) });
    const flows = model.flows(fine);
    const isWithin = (i) => model.isShared && fine.rowLevel === fine.columnLevel && flows.row[i] === flows.column[i];
    const sure = explorer.order(flows).filter((i) => !model.mayBeZero(fine.levels, flows.value[i], fine.areas(flows.row[i], flows.column[i])));
    const between = sure.filter((i) => !isWithin(i));
    this.show(fine, flows, between.length ? between : sure, !between.length);
  }
}

/* Totals of all areas of one axis, whatever is looked at; of a table with one axis, all there is. */
export class Totals extends List {
  constructor(explorer) {
    super(explorer);
    const axes = this.model.axes.slice(0, this.model.header.axes.length);
    const again = () => { this.limit = PAGE_ROWS; this.show(this.view); explorer.explain(); };
    this.select = h('select', { class: 'field', id: 'totals-of', onchange: again },
      axes.map((axis, number) => h('optgroup', { label: axis.title },
        axis.levels.slice(1).map((level, i) => h('option', { value: `${number}.${i + 1}` },
          `${axis.title}: ${level.name} (${whole(level.codes.length)})`)))));
    const start = axes[0].isEdition ? 1 : this.model.header.opens[this.model.order[0]];
    this.select.value = `0.${start ?? axes[0].depth}`;
    this.input = h('input', { class: 'field', type: 'search', id: 'search', placeholder: 'Code or name', oninput: again });
    this.node.prepend(h('div', { class: 'bar' }, h('label', {}, h('span', {}, 'Totals of'), this.select),
      h('label', {}, h('span', {}, 'Find'), this.input)));
  }

  rows() {
    const [number, level] = this.select.value.split('.').map(Number);
    return totalRows(this.model, number, level, this.input.value, this.view.edition ?? undefined);
  }

  /* An area in a list of totals is not zoomed into: the list is the same for every view. */
  name(number, level, index) { return this.model.axes[number].label(level, index); }

  leavesOut() { return false; }

  /* The source of these totals, and so their reliability. */
  note() {
    const { model } = this;
    const { levels, named } = this.listed;
    if (model.isConfidential) return null;
    const isOfEditions = named.some((number) => model.axes[number].isEdition);
    const edition = isOfEditions ? null : this.view.edition;
    const series = model.axes.find(({ isEdition }) => isEdition);
    const whole = series && !isOfEditions ? `edition ${series.code(1, edition ?? series.start.index)}` : 'the whole table';
    const what = model.isFlat ? '' : `Totals of ${whole}. `;
    const how = model.isMeasured(levels) ? 'They were measured separately, so that their intervals are as good as stated. Flows that are listed may add up to less: others are too small.'
      : model.isSummed(levels) ? 'These marginal totals were not measured themselves.'
        : 'Noise was added to these totals themselves.';
    return [warningOf(model, levels, edition), h('p', { class: 'note' }, what + how)];
  }
}
