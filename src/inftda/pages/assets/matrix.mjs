/* The matrix of a view. Arrow keys move in it, Enter zooms in, Escape zooms out. */

import { Top } from './list.mjs';
import { h, short, whole } from './tools.mjs';

/* With more areas than this only the largest are shown and the rest is summed up. */
const ALL_SHOWN = 40;
const LARGEST_SHOWN = 30;

/* The numbers of a matrix: its rows and columns, cells and sums, each released and true. */
export class Sums {
  constructor(view, flows) {
    this.view = view;
    this.flows = flows;
    this.rows = this.chosen(0, view.row, view.rowLevel, flows.row);
    this.columns = this.chosen(1, view.column, view.columnLevel, flows.column);
    this.addUp();
  }

  /* Areas to show on one axis; `rest` is the number of areas an entry stands for. */
  chosen(number, focus, level, keys) {
    const { flows, view: { model } } = this;
    const axis = model.axes[number];
    const [first, last] = axis.inside(focus, level);
    const n = last - first;
    /* An area with true counts alone has an entry as well, or it would be added to another one. */
    const size = (i) => Math.abs(flows.value[i]) + (flows.truth ? flows.truth[i] : 0);
    const sums = new Float64Array(n);
    for (let i = 0; i < flows.n; i += 1) sums[keys[i] - first] += size(i);
    const entries = axis.inOrder(level, Array.from(sums, (_, i) => first + i))
      .map((area) => ({ area, sum: sums[area - first] }));
    const used = n > ALL_SHOWN ? entries.filter(({ sum }) => sum > 0) : entries;
    if (used.length <= ALL_SHOWN) return used.length ? used : entries.slice(0, 1);
    used.sort((a, b) => b.sum - a.sum);
    return [...used.slice(0, LARGEST_SHOWN), { area: -1, rest: used.length - LARGEST_SHOWN }];
  }

  addUp() {
    const { flows } = this;
    const empty = () => ({ value: 0, truth: 0 });
    const place = (entries) => new Map(entries.map(({ area }, i) => [area, i]));
    const rowAt = place(this.rows);
    const columnAt = place(this.columns);
    this.cells = this.rows.map(() => this.columns.map(empty));
    this.rowSum = this.rows.map(empty);
    this.columnSum = this.columns.map(empty);
    this.total = empty();
    const add = (cell, i) => {
      cell.value += flows.value[i];
      if (flows.truth) cell.truth += flows.truth[i];
    };
    for (let i = 0; i < flows.n; i += 1) {
      const r = rowAt.get(flows.row[i]) ?? this.rows.length - 1;
      const c = columnAt.get(flows.column[i]) ?? this.columns.length - 1;
      add(this.cells[r][c], i);
      add(this.rowSum[r], i);
      add(this.columnSum[c], i);
      add(this.total, i);
    }
    this.useTotals();
  }

  /* Sums of whole rows and columns are the totals that are published; the rest is what is left. */
  useTotals() {
    const { view } = this;
    const put = (cell, row, column) => { cell.value = view.total(row, column, cell.value); };
    put(this.total, view.row, view.column);
    const along = (entries, sums, putOne) => {
      let left = this.total.value;
      entries.forEach(({ area, rest }, i) => {
        if (rest) sums[i].value = left;
        else putOne(sums[i], area);
        left -= sums[i].value;
      });
    };
    along(this.rows, this.rowSum, (cell, index) => put(cell, { level: view.rowLevel, index }, view.column));
    along(this.columns, this.columnSum, (cell, index) => put(cell, view.row, { level: view.columnLevel, index }));
  }
}

export class Matrix {
  constructor(explorer) {
    this.explorer = explorer;
    this.box = h('div', { class: 'matrix-box' });
    /* Where there is no map, the largest flows stand here. */
    const { words, places, isFlat } = explorer.model;
    this.top = words.cells === 'flows' && explorer.model.isUsual && !places && !isFlat ? new Top(explorer) : null;
    this.node = h('div', {}, this.box, this.top?.node);
    this.at = { row: 0, column: 0 };
  }

  show(view, flows) {
    const { model } = this.explorer;
    this.view = view;
    const { rows, columns, cells, rowSum, columnSum, total } = new Sums(view, flows);
    Object.assign(this, { rows, columns, cells, rowSum, columnSum, total });
    this.shading = this.isReliable() ? 'reliable' : this.explorer.shading;
    this.largest = Math.max(...this.cells.map((line) => Math.max(...line.map(({ value }) => Math.abs(value)))), 1);
    const label = (number, level, entry) =>
      entry.rest ? `${whole(entry.rest)} others` : model.axes[number].label(level, entry.area);
    const names = columns.map((column) => label(1, view.columnLevel, column));
    /* Names stand upright where they would not fit side by side. */
    const room = matchMedia('(max-width: 46rem)').matches ? 30 : 110;
    const isUpright = names.length > 8 || names.reduce((sum, name) => sum + name.length, 0) > room;
    const sum = (row, column, { value }) =>
      h('td', { class: 'sum', title: whole(value), 'data-at': `${row},${column}`, tabindex: -1 }, short(value));
    const [isOfEditions, hasEditions] = model.axes.map(({ isEdition }) => isEdition);
    const hasSums = { rows: rows.length > 1 && !isOfEditions, columns: columns.length > 1 && !hasEditions };
    /* A total is a number of its own, which need not be the sum of what is listed. */
    const sumName = (...ends) => {
      const levels = [...ends, ...view.further.map(({ level }) => level)];
      return model.isSummed(levels) && !model.isMeasured(levels) ? 'Sum' : 'Total';
    };
    const head = h('tr', {},
      h('th', { scope: 'col' }, h('span', {}, `${model.words.row} ↓`), ' ', h('span', {}, `${model.words.column} →`)),
      names.map((name, i) => h('th', {
        scope: 'col', class: columns[i].rest ? 'rest' : null, title: name, 'data-at': `-1,${i}`, tabindex: -1,
      }, h('span', {}, name))),
      hasSums.columns ? h('th', { scope: 'col', class: 'rest' }, h('span', {}, sumName(view.rowLevel, view.column.level))) : null);
    const body = rows.map((row, r) => {
      const name = label(0, view.rowLevel, row);
      return h('tr', {},
        h('th', {
          scope: 'row', class: row.rest ? 'rest' : null, title: name, 'data-at': `${r},-1`, tabindex: -1,
        }, name),
        columns.map((column, c) => this.cell(r, c)),
        hasSums.columns ? sum(r, columns.length, this.rowSum[r]) : null);
    });
    const foot = hasSums.rows ? h('tr', {}, h('th', { scope: 'row', class: 'rest' }, sumName(view.row.level, view.columnLevel)),
      columns.map((_, c) => sum(rows.length, c, this.columnSum[c])),
      hasSums.columns ? sum(rows.length, columns.length, this.total) : null) : null;
    const looks = ['matrix', isUpright ? 'upright' : 'wide', names.length > 15 ? 'dense' : ''].join(' ').trim();
    this.box.classList.toggle('tall', rows.length > 24);
    this.top?.showFine(view);
    this.node.classList.toggle('beside', Boolean(this.top?.isShown));
    this.table = h('table', {
      class: looks, role: 'grid',
      'aria-label': `${model.words.unit} by ${model.axes[0].title} and ${model.axes[1].title}`,
      onclick: (event) => this.act(event.target),
      onkeydown: (event) => this.key(event),
      onfocusin: (event) => this.point(event.target),
      onmouseover: (event) => this.point(event.target),
    }, h('thead', {}, head), h('tbody', {}, body), foot ? h('tfoot', {}, foot) : null);
    this.box.replaceChildren(this.table);
    this.at = { row: 0, column: 0 };
    this.find(0, 0)?.setAttribute('tabindex', '0');
  }

  /* Where all numbers have the best grade, shades show their size. */
  isReliable() {
    const { view, explorer } = this;
    if (explorer.shading !== 'reliability' || !this.total.value) return false;
    return this.rows.every(({ area: row, rest }, r) => rest || this.columns.every(({ area: column, rest: others }, c) => {
      const { value } = this.cells[r][c];
      return others || !value || explorer.model.grade(view.levels, value, view.areas(row, column)) === 1;
    }));
  }

  cell(r, c) {
    const { value, truth } = this.cells[r][c];
    const at = { 'data-at': `${r},${c}`, tabindex: -1 };
    if (this.rows[r].rest || this.columns[c].rest) {
      return h('td', { class: 'rest', ...at }, value ? short(value) : '·');
    }
    if (value === 0 && !truth) return h('td', { class: 'none', ...at }, '·');
    const areas = this.view.areas(this.rows[r].area, this.columns[c].area);
    const grade = this.explorer.gradeBy(this.shading, this.view, value, truth, this.largest, areas);
    return h('td', { class: grade ? 'r' + grade : null, ...at }, short(value));
  }

  find(row, column) { return this.table.querySelector(`[data-at="${row},${column}"]`); }

  place(target) {
    const cell = target.closest?.('[data-at]');
    if (!cell) return null;
    const [row, column] = cell.dataset.at.split(',').map(Number);
    return { row, column };
  }

  /* Describe a cell. */
  point(target) {
    const place = this.place(target);
    if (!place) return;
    const { row, column } = place;
    if (row < 0 || column < 0) return;
    const { view } = this;
    const atRow = row < this.rows.length ? { level: view.rowLevel, index: this.rows[row].area } : view.row;
    const atColumn = column < this.columns.length
      ? { level: view.columnLevel, index: this.columns[column].area } : view.column;
    const cell = row < this.rows.length
      ? (column < this.columns.length ? this.cells[row][column] : this.rowSum[row])
      : (column < this.columns.length ? this.columnSum[column] : this.total);
    this.explorer.say(atRow, atColumn, cell);
  }

  act(target, options) {
    const place = this.place(target);
    if (!place) return;
    const { row, column } = place;
    const changes = {};
    const { view, explorer } = this;
    if (row >= 0 && row < this.rows.length) {
      if (this.rows[row].rest) return;
      changes.row = { level: view.rowLevel, index: this.rows[row].area };
    }
    if (column >= 0 && column < this.columns.length) {
      if (this.columns[column].rest) return;
      changes.column = { level: view.columnLevel, index: this.columns[column].area };
    }
    if (row >= 0 && column >= 0 && row < this.rows.length && column < this.columns.length
      && !this.cells[row][column].value && !this.cells[row][column].truth) return;
    explorer.go(changes, options);
  }

  key(event) {
    const moves = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
    const place = this.place(event.target);
    if (!place) return;
    if (event.key === 'Enter' || event.key === ' ') this.act(event.target, { focus: true });
    else if (event.key in moves) this.move(place.row + moves[event.key][0], place.column + moves[event.key][1]);
    else if (event.key === 'Home') this.move(place.row, 0);
    else if (event.key === 'End') this.move(place.row, this.columns.length - 1);
    else return;
    event.preventDefault();
  }

  move(row, column) {
    const next = this.find(row, column);
    if (!next) return;
    this.find(this.at.row, this.at.column)?.setAttribute('tabindex', '-1');
    this.at = { row, column };
    next.setAttribute('tabindex', '0');
    next.focus();
    next.scrollIntoView({ block: 'nearest', inline: 'nearest' });
  }

  focus() { this.find(this.at.row, this.at.column)?.focus({ preventScroll: true }); }
}
