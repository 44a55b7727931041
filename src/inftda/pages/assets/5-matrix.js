/* The matrix of a view. Arrow keys move in it, Enter zooms in, Escape zooms out. */

/* With more areas than this only the largest are shown and the rest is summed up. */
const ALL_SHOWN = 40;
const LARGEST_SHOWN = 30;

class Matrix {
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
    const rows = this.chosen(0, view.row, view.rowLevel, flows.row, flows);
    const columns = this.chosen(1, view.column, view.columnLevel, flows.column, flows);
    this.rows = rows;
    this.columns = columns;
    this.sums(flows);
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
    const hasSums = { rows: rows.length > 1, columns: columns.length > 1 };
    /* A total is a number of its own, which need not be the sum of what is listed. */
    const sumName = (...ends) => {
      const levels = [...ends, ...view.further.map(({ level }) => level)];
      return model.isAcross(levels) && !model.isMeasured(levels) ? 'Sum' : 'Total';
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
    this.node.classList.toggle('beside', Boolean(this.top) && !isUpright);
    this.top?.showFine(view);
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

  /* Areas to show on one axis; `rest` is the number of areas an entry stands for. */
  chosen(number, focus, level, keys, flows) {
    const [first, last] = this.explorer.model.axes[number].inside(focus, level);
    const n = last - first;
    const entries = Array.from({ length: n }, (_, i) => ({ area: first + i, sum: 0 }));
    for (let i = 0; i < flows.n; i += 1) entries[keys[i] - first].sum += Math.abs(flows.value[i]);
    const used = n > ALL_SHOWN ? entries.filter(({ sum }) => sum > 0) : entries;
    if (used.length <= ALL_SHOWN) return used.length ? used : entries.slice(0, 1);
    used.sort((a, b) => b.sum - a.sum);
    return [...used.slice(0, LARGEST_SHOWN), { area: -1, rest: used.length - LARGEST_SHOWN }];
  }

  /* Where all numbers have the best grade, shades are free to tell their size. */
  isReliable() {
    const { view, explorer } = this;
    if (explorer.shading !== 'reliability') return false;
    return this.rows.every(({ area: row, rest }, r) => rest || this.columns.every(({ area: column, rest: others }, c) => {
      const { value } = this.cells[r][c];
      return others || !value || explorer.model.grade(view.levels, value, view.areas(row, column)) === 1;
    }));
  }

  sums(flows) {
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
    const { view, explorer } = this;
    const put = (cell, row, column) => { cell.value = explorer.total(row, column, cell.value); };
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

  cell(r, c) {
    const { value, truth } = this.cells[r][c];
    const at = { 'data-at': `${r},${c}`, tabindex: -1 };
    if (this.rows[r].rest || this.columns[c].rest) {
      return h('td', { class: 'rest', ...at }, value ? short(value) : '·');
    }
    if (value === 0 && !truth) return h('td', { class: 'none', ...at }, '·');
    const areas = this.view.areas(this.rows[r].area, this.columns[c].area);
    const grade = this.explorer.shade(this.shading, this.view, value, truth, this.largest, areas);
    return h('td', { class: grade ? 'r' + grade : null, ...at }, short(value));
  }

  find(row, column) { return this.table.querySelector(`[data-at="${row},${column}"]`); }

  place(target) {
    const cell = target.closest?.('[data-at]');
    if (!cell) return null;
    const [row, column] = cell.dataset.at.split(',').map(Number);
    return { row, column };
  }

  /* Tell what a cell says. */
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
